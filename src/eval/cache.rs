//! A memory of evaluations, bounded in bytes and shared by threads.
//!
//! Evaluators are pure, so an answer from the cache is bit for bit the one that the evaluator would give
//! again. Two positions share an entry only when their whole [`Game::key`]s are equal, never because of a
//! hash. A cache belongs to one evaluator: make a new one for new weights.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{EvalError, EvalWork, Evaluations, Evaluator, KeyHasher, Leaves, key_hash};
use crate::game::{Game, WdlPov};

/// Ways of a set: places where a key may lie.
const WAYS: usize = 4;
/// Moves of a typical position, for dividing the budget between slots and priors.
const TYPICAL_MOVES: usize = 12;
/// What an allocation costs beside its contents, and the step of its size (glibc).
const ALLOCATION: usize = 16;

/// A remembered answer.
#[derive(Debug)]
struct Entry<K> {
    key: K,
    value: WdlPov,
    priors: Box<[f32]>,
    /// When it was used last, in accesses of its shard; wraps around harmlessly.
    used: u32,
}

/// Bytes of priors on the heap.
fn heap_bytes(moves: usize) -> usize {
    (size_of::<f32>() * moves).next_multiple_of(ALLOCATION) + ALLOCATION
}

#[derive(Debug)]
struct Shard<K> {
    /// `WAYS` neighbouring slots form a set.
    slots: Vec<Option<Entry<K>>>,
    clock: u32,
    /// Where to evict next when the priors outgrow their share.
    hand: usize,
    /// Bytes of all priors of this shard.
    heap: usize,
    heap_limit: usize,
}

impl<K: Copy + Eq> Shard<K> {
    fn set(&mut self, hash: u64) -> &mut [Option<Entry<K>>] {
        let sets = self.slots.len() / WAYS;
        // The high half chose the shard; the low half, widened, chooses the set.
        let set = ((hash & 0xffff_ffff) as usize * sets) >> 32;
        &mut self.slots[set * WAYS..(set + 1) * WAYS]
    }

    fn get(&mut self, hash: u64, key: &K, priors: &mut [f32]) -> Option<WdlPov> {
        self.clock = self.clock.wrapping_add(1);
        let clock = self.clock;
        let entry = self.set(hash).iter_mut().flatten().find(|entry| entry.key == *key)?;
        if entry.priors.len() != priors.len() {
            debug_assert!(false, "equal keys must have equal legal lists");
            return None;
        }
        entry.used = clock;
        priors.copy_from_slice(&entry.priors);
        Some(entry.value)
    }

    fn insert(&mut self, hash: u64, key: K, value: WdlPov, priors: &[f32]) {
        let bytes = heap_bytes(priors.len());
        if bytes > self.heap_limit {
            return;
        }
        let clock = self.clock;
        let set = self.set(hash);
        let way = match set.iter().position(|slot| slot.as_ref().is_some_and(|entry| entry.key == key)) {
            // Another thread was faster; the answer is the same.
            Some(_) => return,
            None => {
                let age = |slot: &Option<Entry<K>>| slot.as_ref().map_or(u32::MAX, |e| clock.wrapping_sub(e.used));
                (0..WAYS).max_by_key(|&way| age(&set[way])).expect("a set has ways")
            }
        };
        match &mut set[way] {
            // The common case in steady state: as many moves as before, no allocation.
            Some(entry) if entry.priors.len() == priors.len() => {
                entry.priors.copy_from_slice(priors);
                (entry.key, entry.value, entry.used) = (key, value, clock);
            }
            slot => {
                let old = slot.replace(Entry { key, value, priors: priors.into(), used: clock });
                self.heap = self.heap + bytes - old.map_or(0, |entry| heap_bytes(entry.priors.len()));
            }
        }
        while self.heap > self.heap_limit {
            if let Some(entry) = self.slots[self.hand].take() {
                self.heap -= heap_bytes(entry.priors.len());
            }
            self.hand = (self.hand + 1) % self.slots.len();
        }
    }
}

/// How often a cache answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Positions answered from memory, also those that occur twice in one batch.
    pub hits: u64,
    /// Positions that had to be evaluated.
    pub misses: u64,
}

impl CacheStats {
    /// Share of positions answered from memory, 0 when nothing was asked.
    pub fn hit_share(&self) -> f64 {
        let all = self.hits + self.misses;
        if all == 0 { 0.0 } else { self.hits as f64 / all as f64 }
    }
}

/// The memory itself, shared through an [`Arc`] by the [`Cached`] evaluators of all threads.
#[derive(Debug)]
pub struct EvalCache<K> {
    shards: Vec<Mutex<Shard<K>>>,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl<K: Copy + Eq> EvalCache<K> {
    /// A cache that never takes more than `max_bytes` (slots and priors together, allocation overhead
    /// included), but at least a few kilobytes.
    pub fn new(max_bytes: usize) -> Self {
        let set = WAYS * (size_of::<Option<Entry<K>>>() + heap_bytes(TYPICAL_MOVES));
        // Many shards, so that threads seldom wait for each other, but none tiny.
        let shard_count = (max_bytes / (16 * set)).clamp(1, 128);
        let per_shard = max_bytes / shard_count;
        let sets = (per_shard / set).clamp(1, u32::MAX as usize);
        let heap_limit = per_shard.saturating_sub(sets * WAYS * size_of::<Option<Entry<K>>>()).max(1024);
        let shard = || {
            let mut slots = Vec::new();
            slots.resize_with(sets * WAYS, || None);
            Mutex::new(Shard { slots, clock: 0, hand: 0, heap: 0, heap_limit })
        };
        Self { shards: (0..shard_count).map(|_| shard()).collect(), hits: AtomicU64::new(0), misses: AtomicU64::new(0) }
    }

    /// Hits and misses so far.
    pub fn stats(&self) -> CacheStats {
        CacheStats { hits: self.hits.load(Ordering::Relaxed), misses: self.misses.load(Ordering::Relaxed) }
    }

    /// Bytes in use: all slots and the priors at hand.
    pub fn bytes_used(&self) -> usize {
        let of = |shard: &Mutex<Shard<K>>| {
            let shard = lock(shard);
            shard.slots.len() * size_of::<Option<Entry<K>>>() + shard.heap
        };
        self.shards.iter().map(of).sum()
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard<K>> {
        let shard = ((hash >> 32) as usize * self.shards.len()) >> 32;
        lock(&self.shards[shard])
    }
}

/// A shard is consistent between statements that can panic, so a thread that died with the lock leaves
/// nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers what it remembers, asks `inner` for the rest, each distinct position of a batch once.
#[derive(Debug)]
pub struct Cached<G: Game, E> {
    inner: E,
    cache: Arc<EvalCache<G::Key>>,
    missing: Leaves<G>,
    /// For each missing leaf: its index, hash and key.
    wanted: Vec<(usize, u64, G::Key)>,
    /// Leaves that wait for the same position: (leaf, place in `missing`).
    twins: Vec<(usize, usize)>,
    /// Where a key waits in `missing`.
    waiting: HashMap<G::Key, usize, BuildHasherDefault<KeyHasher>>,
    answer: Evaluations,
}

impl<G: Game, E> Cached<G, E> {
    /// Remembers the answers of `inner` in `cache`. Evaluators that share a cache must be equal.
    pub fn new(inner: E, cache: Arc<EvalCache<G::Key>>) -> Self {
        Self {
            inner,
            cache,
            missing: Leaves::default(),
            wanted: Vec::new(),
            twins: Vec::new(),
            waiting: HashMap::default(),
            answer: Evaluations::default(),
        }
    }

    /// The memory.
    pub fn cache(&self) -> &Arc<EvalCache<G::Key>> {
        &self.cache
    }
}

impl<G: Game, E: Evaluator<G>> Evaluator<G> for Cached<G, E> {
    fn evaluate(&mut self, game: &G, leaves: &Leaves<G>, out: &mut Evaluations) -> Result<(), EvalError> {
        out.reset(leaves);
        self.missing.clear();
        self.wanted.clear();
        self.twins.clear();
        self.waiting.clear();
        for index in 0..leaves.len() {
            let key = game.key(leaves.state(index));
            let hash = key_hash(&key);
            let priors = &mut out.priors[leaves.span(index)];
            if let Some(value) = self.cache.shard(hash).get(hash, &key, priors) {
                out.values[index] = value;
                continue;
            }
            let place = *self.waiting.entry(key).or_insert(self.missing.len());
            if place < self.missing.len() {
                self.twins.push((index, place));
            } else {
                self.missing.push(leaves.state(index), leaves.legal(index));
                self.wanted.push((index, hash, key));
            }
        }
        let misses = self.missing.len();
        if misses > 0 {
            self.inner.evaluate(game, &self.missing, &mut self.answer)?;
            for (place, &(index, hash, key)) in self.wanted.iter().enumerate() {
                let (value, priors) = (self.answer.values[place], &self.answer.priors[self.missing.span(place)]);
                out.values[index] = value;
                out.priors[leaves.span(index)].copy_from_slice(priors);
                self.cache.shard(hash).insert(hash, key, value, priors);
            }
            for &(index, place) in &self.twins {
                out.values[index] = self.answer.values[place];
                out.priors[leaves.span(index)].copy_from_slice(&self.answer.priors[self.missing.span(place)]);
            }
        }
        self.cache.misses.fetch_add(misses as u64, Ordering::Relaxed);
        self.cache.hits.fetch_add((leaves.len() - misses) as u64, Ordering::Relaxed);
        Ok(())
    }

    fn take_work(&mut self) -> EvalWork {
        self.inner.take_work()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testgame::Pairs;
    use super::super::testleaves::{leaves_of, random_states};
    use super::super::{Counting, HashEval};
    use super::*;

    type Key = <Pairs as Game>::Key;

    fn bits(out: &Evaluations) -> (Vec<u32>, Vec<u32>) {
        let values = out.values.iter().flat_map(|v| [v.win, v.draw, v.loss].map(f32::to_bits)).collect();
        (values, out.priors.iter().map(|p| p.to_bits()).collect())
    }

    #[test]
    fn cached_answers_equal_fresh_ones_whatever_the_size() {
        let game = Pairs;
        for max_bytes in [0, 3000, 20_000, 4 << 20] {
            let cache = Arc::new(EvalCache::<Key>::new(max_bytes));
            let mut cached = Cached::new(Counting::new(HashEval::new(9)), cache.clone());
            let (mut seen, mut fresh) = (Evaluations::default(), Evaluations::default());
            for round in 0..40 {
                let leaves = leaves_of(&game, &random_states(&game, 100 + round % 13, 64));
                cached.evaluate(&game, &leaves, &mut seen).unwrap();
                HashEval::new(9).evaluate(&game, &leaves, &mut fresh).unwrap();
                assert_eq!(bits(&seen), bits(&fresh));
                assert!(cache.bytes_used() <= max_bytes.max(8192), "{} of {max_bytes}", cache.bytes_used());
            }
            let stats = cache.stats();
            assert_eq!(stats.hits + stats.misses, 40 * 64);
            assert_eq!(stats.misses, cached.inner.counts().positions());
            if max_bytes >= 1 << 20 {
                // Rounds 13 and later repeat what came before; a large cache forgets next to nothing.
                assert!(stats.misses < 13 * 64, "{stats:?}");
            }
        }
    }

    #[test]
    fn a_batch_evaluates_each_position_once() {
        let game = Pairs;
        let state = random_states(&game, 3, 1)[0];
        let mut cached = Cached::new(Counting::new(HashEval::new(1)), Arc::new(EvalCache::new(1 << 16)));
        let mut out = Evaluations::default();
        cached.evaluate(&game, &leaves_of(&game, &[state; 5]), &mut out).unwrap();
        assert_eq!(cached.inner.counts().positions(), 1);
        assert_eq!(cached.cache().stats(), CacheStats { hits: 4, misses: 1 });
        assert!(out.values.iter().all(|value| *value == out.values[0]));
        assert_eq!(cached.cache().stats().hit_share(), 0.8);
    }

    #[test]
    fn threads_share_it() {
        let cache = Arc::new(EvalCache::<Key>::new(30_000));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let cache = cache.clone();
                scope.spawn(move || {
                    let mut cached = Cached::new(HashEval::new(2), cache);
                    let (mut seen, mut fresh) = (Evaluations::default(), Evaluations::default());
                    for round in 0..60 {
                        let leaves = leaves_of(&Pairs, &random_states(&Pairs, (round + thread) % 17, 32));
                        cached.evaluate(&Pairs, &leaves, &mut seen).unwrap();
                        HashEval::new(2).evaluate(&Pairs, &leaves, &mut fresh).unwrap();
                        assert_eq!(bits(&seen), bits(&fresh));
                    }
                });
            }
        });
        let stats = cache.stats();
        assert_eq!(stats.hits + stats.misses, 4 * 60 * 32);
        assert!(stats.hits > 0 && cache.bytes_used() <= 30_000);
    }

    #[test]
    fn an_error_passes_through_and_poisons_nothing() {
        struct Broken(bool);
        impl Evaluator<Pairs> for Broken {
            fn evaluate(
                &mut self,
                game: &Pairs,
                leaves: &Leaves<Pairs>,
                out: &mut Evaluations,
            ) -> Result<(), EvalError> {
                if self.0 { Err(EvalError("gone".into())) } else { HashEval::new(0).evaluate(game, leaves, out) }
            }
        }
        let game = Pairs;
        let leaves = leaves_of(&game, &random_states(&game, 4, 9));
        let mut cached = Cached::new(Broken(true), Arc::new(EvalCache::new(1 << 16)));
        let mut out = Evaluations::default();
        assert_eq!(cached.evaluate(&game, &leaves, &mut out).unwrap_err().to_string(), "gone");
        cached.inner.0 = false;
        cached.evaluate(&game, &leaves, &mut out).unwrap();
        let mut fresh = Evaluations::default();
        HashEval::new(0).evaluate(&game, &leaves, &mut fresh).unwrap();
        assert_eq!(bits(&out), bits(&fresh));
    }
}
