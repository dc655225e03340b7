#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    sparring_fuzz::records(data);
});
