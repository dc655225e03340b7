use super::super::codec::encode_record;
use super::super::file::{read, write};
use super::super::testrecords::random_records;
use super::*;
use crate::util::rng::Stream;

struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
    records: Vec<GameRecord>,
}

impl Place {
    fn new(count: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gen-000012.games");
        Self { _folder: folder, path, records: random_records(51, 12, count) }
    }

    fn open(&self) -> Opened {
        RecordWriter::open(&self.path, self.records[0].origin()).unwrap()
    }

    /// The final file as written at once.
    fn expected(&self) -> Vec<u8> {
        let path = self.path.with_file_name("at-once");
        write(&path, &self.records).unwrap();
        std::fs::read(path).unwrap()
    }
}

#[test]
fn order_and_interruptions_leave_no_trace() {
    let place = Place::new(60);
    let mut stream = Stream::test(52);
    let mut order = place.records.clone();
    stream.shuffle(&mut order);
    let mut writer = place.open().writer;
    let mut written = 0;
    while written < order.len() {
        let count = (1 + stream.below(5)).min(order.len() - written);
        writer.append(&order[written..written + count]).unwrap();
        written += count;
        if stream.below(3) == 0 {
            let opened = {
                drop(writer);
                place.open()
            };
            assert!(opened.warning.is_none());
            writer = opened.writer;
            let known: BTreeSet<u32> = order[..written].iter().map(|record| record.index).collect();
            assert_eq!(*writer.indices(), known);
        }
    }
    let read_back = writer.records().unwrap();
    assert!(read_back.iter().map(|record| record.index).eq(0..60));
    assert_eq!(writer.finish().unwrap(), 60);
    assert_eq!(std::fs::read(&place.path).unwrap(), place.expected());
    assert!(!RecordWriter::journal_of(&place.path).exists());
    assert_eq!(read(&place.path).unwrap().records, read_back);
    let error = RecordWriter::open(&place.path, place.records[0].origin()).unwrap_err();
    assert!(matches!(error, RecordFileError::Complete { .. }));
}

#[test]
fn a_journal_torn_anywhere_goes_on() {
    let place = Place::new(4);
    let journal = RecordWriter::journal_of(&place.path);
    let mut writer = place.open().writer;
    for pair in place.records.chunks(2) {
        writer.append(pair).unwrap();
    }
    drop(writer);
    let whole = std::fs::read(&journal).unwrap();
    let expected = place.expected();
    // Each length would take half a minute of syncing.
    for length in (0..20).chain((20..whole.len()).step_by(13)).chain([whole.len() - 1, whole.len()]) {
        std::fs::write(&journal, &whole[..length]).unwrap();
        let Opened { mut writer, warning } = place.open();
        let kept = writer.indices().len();
        let complete = length <= HEADER_BYTES || length == whole.len() || warning.is_none();
        assert!(complete || warning.as_ref().is_some_and(|damage| damage.kept == kept));
        assert!(kept == 4 || length < whole.len());
        let missing: Vec<GameRecord> =
            place.records.iter().filter(|record| !writer.indices().contains(&record.index)).cloned().collect();
        writer.append(&missing).unwrap();
        writer.finish().unwrap();
        assert_eq!(std::fs::read(&place.path).unwrap(), expected);
        std::fs::remove_file(&place.path).unwrap();
    }
    // A flipped bit costs the batch it is in and those after it, no more.
    let mut flipped = whole.clone();
    flipped[whole.len() - 3] ^= 4;
    std::fs::write(&journal, flipped).unwrap();
    let opened = place.open();
    assert_eq!(opened.writer.indices().iter().copied().collect::<Vec<_>>(), [0, 1]);
    let warning = opened.warning.unwrap();
    assert!(warning.to_string().contains("kept the 2 games before"), "{warning}");
}

#[test]
fn what_does_not_belong_is_refused() {
    let place = Place::new(3);
    let mut writer = place.open().writer;
    writer.append(&place.records[..1]).unwrap();
    let error = writer.append(&place.records[..2]).unwrap_err();
    assert!(error.to_string().contains("game 0 is there already"), "{error}");
    let mut other = place.records[1].clone();
    other.seed += 1;
    let error = writer.append(&[other]).unwrap_err();
    assert!(error.to_string().contains("seed 78, generation 12, expected pairs"), "{error}");
    let mut unfit = place.records[1].clone();
    unfit.plies[0].weight = -1.0;
    assert!(writer.append(&[place.records[2].clone(), unfit]).is_err());
    // Nothing of a refused batch is there.
    assert_eq!(writer.indices().len(), 1);
    writer.append(&place.records[1..]).unwrap();
    drop(writer);
    let other = Origin { generation: 13, ..place.records[0].origin() };
    assert!(matches!(RecordWriter::open(&place.path, other), Err(RecordFileError::Origin { .. })));
    assert_eq!(place.open().writer.finish().unwrap(), 3);

    std::fs::remove_file(&place.path).unwrap();
    std::fs::write(RecordWriter::journal_of(&place.path), b"something else that is no journal at all").unwrap();
    let foreign = RecordWriter::open(&place.path, place.records[0].origin());
    assert!(matches!(foreign, Err(RecordFileError::Foreign { .. })));
    RecordWriter::discard_journal(&place.path).unwrap();
    RecordWriter::discard_journal(&place.path).unwrap();
}

#[test]
fn a_failed_append_may_be_tried_again() {
    let place = Place::new(4);
    let mut writer = place.open().writer;
    writer.append(&place.records[..2]).unwrap();
    // Half of a batch that never came to its end, as a full disk leaves it.
    let mut bytes = Vec::new();
    encode_record(&place.records[2], &mut bytes).unwrap();
    writer.file.write_all(&bytes).unwrap();
    writer.append(&place.records[2..]).unwrap();
    let length = writer.end;
    drop(writer);
    // What the later, shorter batch did not cover is cut off on opening.
    let opened = place.open();
    assert_eq!((opened.writer.indices().len(), opened.writer.end), (4, length));
    opened.writer.finish().unwrap();
    assert_eq!(std::fs::read(&place.path).unwrap(), place.expected());

    // A read-only handle stands for a disk that takes nothing.
    let place = Place::new(2);
    let mut writer = place.open().writer;
    writer.file = File::open(RecordWriter::journal_of(&place.path)).unwrap();
    assert!(writer.append(&place.records).is_err());
    assert!(writer.indices().is_empty());
}
