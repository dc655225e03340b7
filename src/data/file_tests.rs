use super::super::testrecords::random_records;
use super::*;

fn encoded(records: &[GameRecord]) -> Vec<Vec<u8>> {
    let bytes = |record| {
        let mut out = Vec::new();
        encode_record(record, &mut out).unwrap();
        out
    };
    records.iter().map(bytes).collect()
}

/// A file with its records in chunks of two.
fn small_file(count: u32) -> (Vec<Vec<u8>>, Vec<u8>) {
    let records = encoded(&random_records(41, 2, count));
    let mut bytes = header().to_vec();
    for pair in records.chunks(2) {
        let mut writer = ChunkWriter::default();
        pair.iter().for_each(|record| writer.add(record).unwrap());
        bytes.extend(writer.finish().unwrap());
    }
    bytes.extend(closing_mark(count));
    (records, bytes)
}

fn read_bytes(folder: &Path, bytes: &[u8]) -> Result<ReadRecords, RecordFileError> {
    let path = folder.join("file");
    std::fs::write(&path, bytes).unwrap();
    read(&path)
}

#[test]
fn files_round_trip_in_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gen.games");
    let records = random_records(40, 1, 6000);
    write(&path, &records).unwrap();
    let back = read(&path).unwrap();
    assert_eq!(back.warning, None);
    assert_eq!(encoded(&back.records), encoded(&records));
    let mut reader = RecordReader::open(&path).unwrap();
    let mut chunks = 0;
    while reader.next_chunk().unwrap().is_some() {
        chunks += 1;
    }
    assert!(chunks > 1, "{chunks}");
    assert_eq!(reader.into_warning(), None);
    // Reading what was rounded and writing it again gives the same file.
    let again = folder.path().join("again.games");
    write(&again, &back.records).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(&again).unwrap());
    write(&again, &[]).unwrap();
    let none = read(&again).unwrap();
    assert!(none.records.is_empty() && none.warning.is_none());
}

#[test]
fn damage_at_any_byte_keeps_what_stands_before() {
    let folder = tempfile::tempdir().unwrap();
    let (records, bytes) = small_file(5);
    assert_eq!(encoded(&read_bytes(folder.path(), &bytes).unwrap().records), records);
    let mut kept_counts = [0; 6];
    let mut headers = 0;
    for at in 0..bytes.len() {
        for flip in [1u8, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            match read_bytes(folder.path(), &damaged) {
                Ok(read) => {
                    let damage = read.warning.expect("a change is noticed");
                    assert_eq!(damage.kept, read.records.len());
                    assert!(damage.offset <= at as u64 && damage.offset + damage.lost_bytes == bytes.len() as u64);
                    assert_eq!(encoded(&read.records)[..], records[..damage.kept]);
                    kept_counts[damage.kept] += 1;
                }
                Err(error) => {
                    assert!(at < HEADER_BYTES, "{error}");
                    headers += 1;
                }
            }
        }
        match read_bytes(folder.path(), &bytes[..at]) {
            Ok(read) => assert_eq!(encoded(&read.records)[..], records[..read.warning.unwrap().kept]),
            Err(_) => assert!(at < HEADER_BYTES),
        }
    }
    assert_eq!(headers, 3 * HEADER_BYTES);
    // Chunks of two, two and one record, and the closing mark.
    assert!([0, 2, 4, 5].iter().all(|&kept| kept_counts[kept] > 0) && kept_counts[1] + kept_counts[3] == 0);
    let mut longer = bytes.clone();
    longer.extend(&bytes[HEADER_BYTES..]);
    let read = read_bytes(folder.path(), &longer).unwrap();
    assert!(read.records.len() == 5 && read.warning.unwrap().to_string().contains("bytes follow the closing mark"));
}

#[test]
fn contents_with_a_right_checksum_are_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let record = encoded(&random_records(42, 0, 1)).remove(0);
    let mut raw = (record.len() as u32).to_le_bytes().to_vec();
    raw.extend(&record);
    let chunk = |raw: &[u8], announced: u32, records: u32| {
        let payload = zstd::bulk::compress(raw, 1).unwrap();
        let mut file = header().to_vec();
        file.extend(chunk_head(payload.len() as u32, announced, records, &payload));
        file.extend(payload);
        file.extend(closing_mark(records));
        file
    };
    let length = raw.len() as u32;
    assert!(read_bytes(folder.path(), &chunk(&raw, length, 1)).unwrap().warning.is_none());
    for at in 0..raw.len() {
        let mut altered = raw.clone();
        altered[at] ^= 0x41;
        let _ = read_bytes(folder.path(), &chunk(&altered, length, 1)).unwrap();
    }
    let what = |file: &[u8]| read_bytes(folder.path(), file).unwrap().warning.unwrap().what;
    assert!(what(&chunk(&raw, length - 1, 1)).contains("cannot be unpacked"));
    assert!(what(&chunk(&raw, length + 1, 1)).contains("instead of"));
    assert!(what(&chunk(&raw, length, 2)).contains("announced"));
    assert!(what(&chunk(&raw, u32::MAX, 1)).contains("more than"));
    assert!(what(&chunk(&raw[..length as usize - 1], length - 1, 1)).contains("beyond its chunk"));
    let mut not_zstd = header().to_vec();
    not_zstd.extend(chunk_head(5, 100, 1, b"hello"));
    not_zstd.extend(b"hello");
    assert!(what(&not_zstd).contains("cannot be unpacked"));
}

#[test]
fn foreign_and_newer_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let message = |bytes: &[u8]| read_bytes(folder.path(), bytes).unwrap_err().to_string();
    assert!(message(b"").ends_with("is not a file of game records: it is empty"));
    assert!(message(b"PK\x03\x04 something else entirely").contains("not a file of game records"));
    assert!(message(&header()[..10]).contains("header is damaged"));
    let mut newer = header();
    newer[8] = 9;
    let crc = crc32fast::hash(&newer[..12]);
    newer[12..].copy_from_slice(&crc.to_le_bytes());
    assert!(message(&newer).contains("record format 9, this program reads up to 1: upgrade"));
    assert!(read(&folder.path().join("absent")).unwrap_err().to_string().contains("absent"));
    let read = read_bytes(folder.path(), &header()).unwrap();
    assert!(read.records.is_empty() && read.warning.unwrap().what.contains("closing mark"));
}

/// Records that are alike take far fewer bytes than they unpack to: what the writer makes of them is read back, what is smaller
/// still is refused, long before it is in memory.
#[test]
fn small_files_do_not_grow_without_bound() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("alike.games");
    let mut record = random_records(42, 1, 1).remove(0);
    let ply = record.plies.remove(0);
    record.plies = vec![ply; 5000];
    let alike = &encoded(&[record])[0];
    let count = 3 * MAX_FILE_RAW as usize / alike.len();
    let mut writer = ChunkWriter::default();
    (0..count).for_each(|_| writer.add(alike).unwrap());
    let chunks = writer.finish().unwrap();
    publish(&path, &chunks, count).unwrap();
    let mut reader = RecordReader::open(&path).unwrap();
    let mut found = 0;
    while let Some(records) = reader.next_chunk().unwrap() {
        found += records.len();
    }
    assert_eq!((found, reader.into_warning()), (count, None));

    let raw: Vec<u8> = [&(alike.len() as u32).to_le_bytes(), &alike[..]].concat().repeat(CHUNK_TARGET / alike.len());
    let payload = zstd::bulk::compress(&raw, COMPRESSION_LEVEL).unwrap();
    let records = raw.len() / (4 + alike.len());
    let mut chunk = chunk_head(payload.len() as u32, raw.len() as u32, records as u32, &payload).to_vec();
    chunk.extend(payload);
    let hostile = [&header()[..], &chunk.repeat(100)].concat();
    std::fs::write(&path, hostile).unwrap();
    let mut reader = RecordReader::open(&path).unwrap();
    let mut unpacked = 0;
    while reader.next_chunk().unwrap().is_some() {
        unpacked += raw.len() as u64;
    }
    assert!((MAX_FILE_RAW / 2..2 * MAX_FILE_RAW).contains(&unpacked), "{unpacked}");
    assert!(reader.into_warning().unwrap().what.contains("unpack to"));
}
