//! Who follows a run.
//!
//! The cycle knows nothing of terminals, files or charts: it tells [`Observers`] what happened, and every
//! [`Observer`] makes of it what it wants.

use super::event::Event;
use crate::util::publish::PublishError;

/// A point at which the state of the run is saved. Everything told before it belongs to the saved part.
///
/// Protocol: the cycle calls [`Observers::mark`] with the next number, and only then publishes the state, with
/// the number in it. After an interruption observers are opened with the mark of the state that is resumed and forget
/// everything recorded after it; so nothing is recorded twice and nothing is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Counts up by one from 1 over the whole run.
    pub number: u64,
    /// The last generation with recorded events.
    pub generation: u32,
    /// Training steps done.
    pub step: u64,
}

/// An observer could not record an event.
#[derive(Debug, thiserror::Error)]
#[error("recording failed: {0}")]
pub struct ObserveError(#[from] pub PublishError);

/// Someone who follows a run.
pub trait Observer: Send {
    /// Takes note of an event.
    ///
    /// # Errors
    /// When it cannot be recorded. The observer stays usable: a later event is recorded if it can be.
    fn observe(&mut self, event: &Event) -> Result<(), ObserveError>;

    /// Makes everything so far safe on disk, and remembers that it belongs to the saved part of the run.
    ///
    /// # Errors
    /// When that fails; the state must not be published then.
    fn mark(&mut self, mark: &Mark) -> Result<(), ObserveError> {
        let _ = mark;
        Ok(())
    }
}

/// Everyone who follows a run.
#[derive(Default)]
pub struct Observers(Vec<Box<dyn Observer>>);

impl Observers {
    /// Nobody.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one more.
    pub fn add(&mut self, observer: impl Observer + 'static) {
        self.0.push(Box::new(observer));
    }

    /// Tells everyone, also when somebody fails.
    ///
    /// # Errors
    /// The first failure.
    pub fn observe(&mut self, event: &Event) -> Result<(), ObserveError> {
        self.each(|observer| observer.observe(event))
    }

    /// Makes everything told so far safe; to be called before a state with this mark is published.
    ///
    /// # Errors
    /// The first failure; the state must not be published then.
    pub fn mark(&mut self, mark: &Mark) -> Result<(), ObserveError> {
        self.each(|observer| observer.mark(mark))
    }

    fn each(
        &mut self,
        mut tell: impl FnMut(&mut dyn Observer) -> Result<(), ObserveError>,
    ) -> Result<(), ObserveError> {
        let mut outcome = Ok(());
        for observer in &mut self.0 {
            let told = tell(observer.as_mut());
            outcome = outcome.and(told);
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_is_told_even_when_somebody_fails() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicU32, Ordering};
        struct Deaf;
        impl Observer for Deaf {
            fn observe(&mut self, _: &Event) -> Result<(), ObserveError> {
                Err(PublishError::NoSpace { folder: "full".into() }.into())
            }
        }
        struct Count(Arc<AtomicU32>);
        impl Observer for Count {
            fn observe(&mut self, _: &Event) -> Result<(), ObserveError> {
                self.0.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        }
        let count = Arc::new(AtomicU32::new(0));
        let mut all = Observers::new();
        all.add(Count(count.clone()));
        all.add(Deaf);
        all.add(Count(count.clone()));
        let error = all.observe(&Event::Notice("x".into())).unwrap_err();
        assert_eq!(error.to_string(), "recording failed: no space left in full: free some and start again");
        assert_eq!(count.load(Ordering::Relaxed), 2);
        all.mark(&Mark { number: 1, generation: 0, step: 0 }).unwrap();
    }
}
