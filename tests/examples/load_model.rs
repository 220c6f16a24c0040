//! What load_model.c does, in Rust, bound to the shared library by hand.
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::{env, process, ptr, slice, str};

const NONE: u64 = u64::MAX;

#[repr(C)]
struct Error {
    struct_nbytes: usize,
    status: c_int,
    os_error: c_int,
    tensor: u64,
    file_offset: u64,
    detail: [c_char; 128],
}

#[repr(C)]
struct TensorInfo {
    struct_nbytes: usize,
    name: *const u8,
    name_nbytes: usize,
    dtype: u32,
    n_dims: u32,
    shape: *const u64,
    nbytes: u64,
    stored_nbytes: u64,
    segment: u64,
    segment_offset: u64,
    hash: u64,
    has_hash: c_int,
}

#[repr(C)]
struct Request {
    tensor: u64,
    first_element: u64,
    n_elements: u64,
    buffer: *mut c_void,
    buffer_nbytes: u64,
}

#[link(name = "ptwm")]
extern "C" {
    fn ptwm_reader_open_path(path: *const c_char, options: *const c_void, reader: *mut *mut c_void, error: *mut Error) -> c_int;
    fn ptwm_reader_close(reader: *mut c_void);
    fn ptwm_reader_get_tensor(reader: *const c_void, index: u64, info: *mut TensorInfo) -> c_int;
    fn ptwm_reader_decode(reader: *const c_void, requests: *const Request, n: usize, options: *const c_void, error: *mut Error) -> c_int;
    fn ptwm_status_string(status: c_int) -> *const c_char;
    fn ptwm_dtype_name(dtype: u32) -> *const c_char;
    fn ptwm_crc32c(crc: u32, data: *const c_void, nbytes: usize) -> u32;
}

/// An open model; closed when it is dropped.
struct Model(*mut c_void);

impl Drop for Model {
    fn drop(&mut self) {
        unsafe { ptwm_reader_close(self.0) }
    }
}

fn check(status: c_int, error: &Error) -> Result<(), String> {
    if status == 0 {
        return Ok(());
    }
    let (kind, detail) = unsafe { (CStr::from_ptr(ptwm_status_string(status)), CStr::from_ptr(error.detail.as_ptr())) };
    Err(format!("{}: {}", kind.to_string_lossy(), detail.to_string_lossy()))
}

fn new_error() -> Error {
    Error { struct_nbytes: std::mem::size_of::<Error>(), status: 0, os_error: 0, tensor: NONE, file_offset: NONE, detail: [0; 128] }
}

impl Model {
    fn open(path: &str) -> Result<Model, String> {
        let (mut error, mut reader) = (new_error(), ptr::null_mut());
        let path = CString::new(path).map_err(|e| e.to_string())?;
        check(unsafe { ptwm_reader_open_path(path.as_ptr(), ptr::null(), &mut reader, &mut error) }, &error)?;
        Ok(Model(reader))
    }

    fn tensor(&self, index: u64) -> Option<TensorInfo> {
        let mut info: TensorInfo = unsafe { std::mem::zeroed() };
        info.struct_nbytes = std::mem::size_of::<TensorInfo>();
        (unsafe { ptwm_reader_get_tensor(self.0, index, &mut info) } == 0).then_some(info)
    }

    fn load(&self, index: u64, nbytes: u64) -> Result<Vec<u8>, String> {
        let (mut error, mut bytes) = (new_error(), vec![0u8; nbytes as usize]);
        let request = Request { tensor: index, first_element: 0, n_elements: NONE, buffer: bytes.as_mut_ptr().cast(), buffer_nbytes: nbytes };
        check(unsafe { ptwm_reader_decode(self.0, &request, 1, ptr::null(), &mut error) }, &error)?;
        Ok(bytes)
    }
}

fn run(path: &str) -> Result<(), String> {
    let model = Model::open(path)?;
    for index in 0.. {
        let Some(info) = model.tensor(index) else { break };
        let bytes = model.load(index, info.nbytes)?;
        let name = unsafe { str::from_utf8_unchecked(slice::from_raw_parts(info.name, info.name_nbytes)) };
        let dtype = unsafe { CStr::from_ptr(ptwm_dtype_name(info.dtype)) };
        let crc = unsafe { ptwm_crc32c(0, bytes.as_ptr().cast(), bytes.len()) };
        println!("{} {} {} {:08x}", name, dtype.to_string_lossy(), info.nbytes, crc);
    }
    Ok(())
}

fn main() {
    let path = env::args().nth(1).expect("usage: load_model FILE");
    if let Err(failure) = run(&path) {
        eprintln!("{}: {}", path, failure);
        process::exit(1);
    }
}
