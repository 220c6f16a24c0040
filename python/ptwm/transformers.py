"""Models of the transformers library from directories with .ptwm files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ptwm.random_access.opening import open_tensors
from ptwm.random_access.slices import TorchSlice

__all__ = ["from_pretrained"]

# Arguments of transformers' from_pretrained that mean another source of weights than the directory's.
_OTHER_SOURCES = ("state_dict", "gguf_file", "variant")
# Those that say how files are downloaded.
_DOWNLOADING = ("cache_dir", "force_download", "local_files_only", "proxies", "revision", "token", "use_safetensors")


def from_pretrained(model_class: Any, directory: str | os.PathLike[str], *model_args: Any, **kwargs: Any) -> Any:
    """What `model_class.from_pretrained(directory)` returns, of a directory with .ptwm instead of .safetensors files.

    model = ptwm.transformers.from_pretrained(AutoModelForCausalLM, "Qwen3-0.6B-ptwm", dtype="auto")

    Tensors are decoded one by one, when transformers puts them into the model; nothing is written to the disk, and
    nothing in transformers is changed. Tokenizers and processors load from the directory as from any other.

    Parameters
    ----------
    model_class
        An auto class of transformers or a class of models.
    directory
        What `ptwm compress` made of a model's directory. Models on a hub are to be downloaded first.
    model_args, kwargs
        As for transformers' from_pretrained: dtype, device_map, quantization_config, subfolder and so on.

    Raises
    ------
    FileNotFoundError
        There is no such directory, or no model in it.
    ImportError
        transformers is missing, or older than version 5.
    TypeError
        An argument that means other weights than the directory's.
    """
    _check_version()
    for name in _OTHER_SOURCES:
        if kwargs.pop(name, None) is not None:
            raise TypeError(f"{name} means other weights than those of the directory")
    root = Path(directory)
    if not root.is_dir():
        raise FileNotFoundError(f"{root}: no such directory (a model on a hub is to be downloaded first)")
    subfolder = kwargs.pop("subfolder", None) or ""
    with open_tensors(root / subfolder) as index:
        config, kwargs = _read_config(model_class, root, subfolder, kwargs)
        if getattr(model_class, "config_class", None) is None:
            model_class, config = _resolve_auto_class(model_class, config, kwargs)
        if kwargs.get("generation_config") is None and (root / subfolder / "generation_config.json").is_file():
            kwargs["generation_config"] = _read_generation_config(root, subfolder)
        # transformers takes the tensors out of such a dict by indexing them, as it does with safetensors' slices.
        state_dict = {name: TorchSlice(index, name) for name in index}
        result = model_class.from_pretrained(None, *model_args, config=config, state_dict=state_dict, **kwargs)
    model = result[0] if isinstance(result, tuple) else result
    model.name_or_path = model.config.name_or_path = str(root)
    return result


def _check_version() -> None:
    import transformers

    if int(transformers.__version__.split(".")[0]) < 5:
        raise ImportError(
            f"ptwm needs transformers 5 or later, this is {transformers.__version__}", name="transformers"
        )


def _read_config(model_class: Any, root: Path, subfolder: str, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The model's configuration, with those of the arguments that belong there, and the others."""
    from transformers import AutoConfig, PreTrainedConfig

    kwargs = {name: value for name, value in kwargs.items() if name not in _DOWNLOADING}
    config = kwargs.pop("config", None)
    if isinstance(config, PreTrainedConfig):
        return config, kwargs
    # These are the model's, although a configuration has attributes of the same names.
    models_own = {name: kwargs.pop(name) for name in ("dtype", "torch_dtype", "quantization_config") if name in kwargs}
    config_class = getattr(model_class, "config_class", None) or AutoConfig
    config, rest = config_class.from_pretrained(
        root if config is None else config, subfolder=subfolder, return_unused_kwargs=True, **kwargs
    )
    if "trust_remote_code" in kwargs:
        rest["trust_remote_code"] = kwargs["trust_remote_code"]
    return config, {**rest, **models_own}


def _read_generation_config(root: Path, subfolder: str) -> Any:
    from transformers import GenerationConfig

    return GenerationConfig.from_pretrained(root, subfolder=subfolder)


def _resolve_auto_class(auto_class: Any, config: Any, kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """The class of models that an auto class means for a configuration, and the configuration that this class takes.

    The auto class itself is asked, by making a model without memory; code in the directory is its business too.
    """
    import copy

    import torch

    with torch.device("meta"):
        example = auto_class.from_config(copy.deepcopy(config), trust_remote_code=kwargs.get("trust_remote_code"))
    model_class = type(example)
    if model_class.config_class is not type(config) and isinstance(example.config, type(config.get_text_config())):
        # A model of text of a configuration for several kinds of data.
        quantization = getattr(config, "quantization_config", None)
        config = config.get_text_config()
        if quantization is not None:
            config.quantization_config = quantization
    return model_class, config
