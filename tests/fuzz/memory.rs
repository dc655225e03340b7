//! How much memory is asked for.
//!
//! The known crates that wrap the allocator (`cap`, `stats_alloc`) count what is in use, not the largest block, which is what
//! a number in a hostile file would ask for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator, watched.
struct Watched;

static LARGEST: AtomicUsize = AtomicUsize::new(0);
static USED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn taken(size: usize) {
    LARGEST.fetch_max(size, Relaxed);
    // What is freed was taken before, but on another thread the one may be noted before the other.
    PEAK.fetch_max(USED.fetch_add(size, Relaxed).wrapping_add(size).min(isize::MAX as usize), Relaxed);
}

// All calls are passed on as they are.
#[expect(unsafe_code, reason = "the trait is unsafe; used in this test alone")]
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        USED.fetch_sub(layout.size(), Relaxed);
        taken(size);
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// Memory while something was done, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// The largest block that was asked for.
    pub largest: usize,
    /// How much more was in use at once than before.
    pub peak: usize,
}

/// Does `work` and watches what memory the whole process asks for meanwhile.
pub fn watch<T>(work: impl FnOnce() -> T) -> (T, Memory) {
    let before = USED.load(Relaxed);
    LARGEST.store(0, Relaxed);
    PEAK.store(before, Relaxed);
    let done = work();
    let memory = Memory { largest: LARGEST.load(Relaxed), peak: PEAK.load(Relaxed).saturating_sub(before) };
    (done, memory)
}
