use super::*;
use std::process::Command;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_file_appears_whole_and_replaces_the_older_one() {
    let folder = folder();
    let path = folder.path().join("state");
    write_atomic(&path, b"one").expect("written");
    let mut file = AtomicFile::create(&path).expect("created");
    file.put(b"two, ").expect("written");
    assert_eq!(std::fs::read(&path).expect("read"), b"one", "nothing shows before it is published");
    assert!(names(folder.path()).iter().any(|name| is_temporary(name)));
    file.put(b"longer").expect("written");
    file.publish().expect("published");
    assert_eq!(std::fs::read(&path).expect("read"), b"two, longer");
    assert_eq!(names(folder.path()), ["state"]);
}

#[test]
fn a_file_may_have_the_longest_name() {
    let folder = folder();
    for name in ["x".repeat(255), "ä".repeat(127)] {
        let path = folder.path().join(&name);
        let mut file = AtomicFile::create(&path).expect("created");
        file.put(b"x").expect("written");
        assert!(names(folder.path()).iter().any(|name| is_temporary(name)));
        file.publish().expect("published");
        assert_eq!(std::fs::read(&path).expect("read"), b"x");
    }
}

#[test]
fn nothing_is_written_through_what_has_the_temporary_name() {
    let folder = folder();
    let victim = folder.path().join("victim");
    std::fs::write(&victim, "safe").expect("written");
    let serial = SERIAL.load(Ordering::Relaxed);
    // Other tests take numbers meanwhile.
    for serial in serial..serial + 1000 {
        let link = folder.path().join(format!(".state.{}-{serial}.tmp", std::process::id()));
        std::os::unix::fs::symlink(&victim, link).expect("linked");
    }
    write_atomic(&folder.path().join("state"), b"new").expect("written");
    assert_eq!(std::fs::read(&victim).expect("read"), b"safe");
    let too_long = AtomicFile::create(&folder.path().join("x".repeat(256))).expect_err("no system allows it");
    assert!(too_long.to_string().contains("cannot write"), "{too_long}");
}

#[test]
fn a_file_given_up_leaves_nothing() {
    let folder = folder();
    let path = folder.path().join("state");
    write_atomic(&path, b"one").expect("written");
    let mut file = AtomicFile::create(&path).expect("created");
    file.put(b"two").expect("written");
    drop(file);
    assert_eq!(names(folder.path()), ["state"]);
    assert_eq!(std::fs::read(&path).expect("read"), b"one");
}

#[test]
fn a_failed_rename_leaves_the_older_file_and_nothing_else() {
    let folder = folder();
    let path = folder.path().join("taken");
    std::fs::create_dir(&path).expect("a folder where the file should go");
    assert!(write_atomic(&path, b"x").is_err());
    assert_eq!(names(folder.path()), ["taken"]);
}

#[test]
fn temporary_files_are_known_by_name_and_swept() {
    let folder = folder();
    let mut file = AtomicFile::create(&folder.path().join("a.b-c")).expect("created");
    file.put(b"x").expect("written");
    // As a killed process leaves it.
    std::mem::forget(file);
    for kept in ["a.tmp", ".hidden", ".x.tmp", ".x.1-.tmp", ".x.1.tmp", "..1-2.tmp", "x.1-2.tmp"] {
        assert!(!is_temporary(kept), "{kept}");
        std::fs::write(folder.path().join(kept), "").expect("written");
    }
    let before = names(folder.path()).len();
    assert_eq!(sweep(folder.path()).expect("swept"), 1);
    assert_eq!(names(folder.path()).len(), before - 1);
}

#[test]
fn failures_name_the_folder_and_the_remedy() {
    let gone = Path::new("/nonexistent-folder/run/state");
    let message = write_atomic(gone, b"x").expect_err("no folder").to_string();
    assert_eq!(
        message,
        "the folder /nonexistent-folder/run is not there: make it, bring it back, or choose another one"
    );
    let cases = [
        (io::ErrorKind::StorageFull, "no space left in /runs/a: free some and start again"),
        (
            io::ErrorKind::ReadOnlyFilesystem,
            "/runs/a is on a read-only file system: make it writable or choose another folder",
        ),
        (
            io::ErrorKind::PermissionDenied,
            "no permission for /runs/a: change its owner or mode, or choose another folder",
        ),
    ];
    for (kind, expected) in cases {
        assert_eq!(PublishError::writing(Path::new("/runs/a/state"), "write", kind.into()).to_string(), expected);
    }
    let nameless = AtomicFile::create(Path::new("/")).expect_err("no file name").to_string();
    assert!(nameless.contains("names no file"), "{nameless}");
}

#[test]
#[cfg(target_os = "linux")]
fn the_system_s_full_disk_is_recognised() {
    let path = Path::new("/dev/full");
    let mut full = OpenOptions::new().write(true).open(path).expect("every Linux has it");
    let source = full.write_all(b"x").expect_err("it is always full");
    let error = PublishError::writing(path, "write", source);
    assert!(matches!(error, PublishError::NoSpace { .. }), "{error}");
}

/// A tiny file system of its own, unmounted when dropped. `None` where mounting is not allowed.
struct TinyDisk(tempfile::TempDir);

impl TinyDisk {
    fn mount(options: &str) -> Option<Self> {
        let folder = folder();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(folder.path());
        let done = mount.stderr(std::process::Stdio::null()).status();
        done.is_ok_and(|status| status.success()).then(|| Self(folder))
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_or_read_only_disk_keeps_the_last_good_file() {
    let Some(disk) = TinyDisk::mount("size=64k") else {
        eprintln!("skipped: mounting a small file system takes root");
        return;
    };
    let path = disk.0.path().join("state");
    write_checked(&path, *b"TEST", 1, &[7; 1000]).expect("there is room");
    let error = write_checked(&path, *b"TEST", 2, &[8; 100_000]).expect_err("there is no room");
    assert!(matches!(&error, PublishError::NoSpace { folder } if folder == disk.0.path()), "{error}");
    assert_eq!(read_checked(&path, *b"TEST", 1).expect("the old one"), [7; 1000]);
    assert_eq!(names(disk.0.path()), ["state"]);
    assert!(free_space(disk.0.path()).expect("measured") <= 64 * 1024);

    let remount = Command::new("mount").args(["-o", "remount,ro"]).arg(disk.0.path()).status();
    assert!(remount.is_ok_and(|status| status.success()));
    let error = write_atomic(&path, b"x").expect_err("read-only");
    assert!(matches!(error, PublishError::ReadOnly { .. }), "{error}");
    assert_eq!(read_checked(&path, *b"TEST", 1).expect("the old one"), [7; 1000]);
}

#[test]
fn checked_files_round_trip() {
    let folder = folder();
    let path = folder.path().join("state");
    for payload in [vec![], vec![1], (0..=255).cycle().take(100_000).collect::<Vec<u8>>()] {
        write_checked(&path, *b"TEST", 3, &payload).expect("written");
        assert_eq!(read_checked(&path, *b"TEST", 3).expect("read"), payload);
    }
}

#[test]
fn every_cut_and_every_flipped_bit_is_noticed() {
    let folder = folder();
    let path = folder.path().join("state");
    write_checked(&path, *b"TEST", 3, b"some contents").expect("written");
    let good = std::fs::read(&path).expect("read");
    for length in 0..good.len() {
        std::fs::write(&path, &good[..length]).expect("cut");
        let error = read_checked(&path, *b"TEST", 3).expect_err("cut short");
        assert!(matches!(error, PublishError::Damaged { .. }), "{length}: {error}");
    }
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, bad).expect("altered");
        assert!(read_checked(&path, *b"TEST", 3).is_err(), "bit {bit}");
    }
    let longer = [&good[..], b"x"].concat();
    std::fs::write(&path, longer).expect("lengthened");
    assert!(read_checked(&path, *b"TEST", 3).is_err());
}

#[test]
fn messages_of_unreadable_files_say_what_is_wrong() {
    let folder = folder();
    let path = folder.path().join("state");
    let read = |kind, format| read_checked(&path, kind, format).expect_err("unreadable").to_string();
    let shown = path.display();
    assert_eq!(read(*b"TEST", 3), format!("there is no file {shown}"));
    std::fs::write(&path, "").expect("written");
    assert_eq!(read(*b"TEST", 3), format!("{shown} is damaged: it is empty; restore it from a copy"));
    write_checked(&path, *b"TEST", 3, b"x").expect("written");
    assert!(read(*b"RUNS", 3).contains("it holds `TEST` where `RUNS` belongs"));
    assert!(
        read(*b"TEST", 2)
            .ends_with("has format 3, but this program reads format 2: use the newer program that wrote it")
    );
    assert!(read(*b"TEST", 4).contains("reads format 4: use the older program"));
}

#[test]
fn a_lock_is_held_once_and_freed_when_dropped() {
    let folder = folder();
    let lock = RunLock::take(folder.path()).expect("free");
    let error = RunLock::take(folder.path()).expect_err("held");
    let expected = format!("{} is in use by process {}:", folder.path().display(), std::process::id());
    assert!(error.to_string().starts_with(&expected), "{error}");
    drop(lock);
    RunLock::take(folder.path()).expect("free again");
    let gone = RunLock::take(Path::new("/nonexistent-folder")).expect_err("no folder");
    assert!(matches!(gone, PublishError::Vanished { .. }), "{gone}");
}
