"""Between .safetensors and .ptwm: single files, and directories of models as the Hugging Face hub has them."""

from ptwm.conversion.directories import compress_directory, decompress_directory
from ptwm.conversion.files import ConversionError, Options, compress_file, decompress_file

__all__ = [
    "ConversionError",
    "Options",
    "compress_directory",
    "compress_file",
    "decompress_directory",
    "decompress_file",
]
