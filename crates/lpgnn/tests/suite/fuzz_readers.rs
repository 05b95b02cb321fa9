//! Every reader on thousands of damaged inputs: none may panic, take long or take much memory.
//!
//! 2,000 inputs per reader; `LPGNN_FUZZ=100000` makes it as many as told. `LPGNN_FUZZ_SEED` sets
//! where the random numbers start; an input that fails is named by its seed, and comes again with
//! `LPGNN_FUZZ=1 LPGNN_FUZZ_SEED=…`.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]
#![allow(clippy::print_stdout, reason = "a count is worth seeing")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use lpgnn::data::{Encoding, FeatureOptions, Format, ReadOptions, read};
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// No input is longer than a few thousand bytes, and no reader has reason to need more than this:
/// a handful of buffers of 256 kB.
const MEMORY: isize = 16 << 20;
const TIME: Duration = Duration::from_secs(2);

/// Counts what each thread has allocated, at present and at most.
struct Counting;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    // When a thread ends, its counters go before its last allocations.
    let _ = NOW.try_with(|now| {
        now.set(now.get() + change);
        let _ = MOST.try_with(|most| most.set(most.get().max(now.get())));
    });
}

// SAFETY: every method hands its arguments to the system's allocator as they are.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.cast_signed() - layout.size().cast_signed());
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Files by name; a folder as a reader finds it.
type Files = Vec<(&'static str, Vec<u8>)>;

/// Damages `valid` again and again with `damage`, reads it at `path` within the folder, and checks
/// what that costs.
fn fuzz(format: Format, path: &str, valid: &Files, damage: impl Fn(&mut ChaCha8Rng, &mut Files)) {
    let number = |key: &str, without: u64| {
        std::env::var(key).map_or(without, |text| text.parse().expect("this is a number"))
    };
    let (inputs, first) = (number("LPGNN_FUZZ", 2000), number("LPGNN_FUZZ_SEED", 0));
    // In memory where that can be had: the test writes far more than it reads.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let path = folder.path().join(path);
    let options = ReadOptions { format: Some(format) };
    write(folder.path(), valid);
    read(&path, &options).unwrap_or_else(|error| panic!("the valid input is refused: {error}"));
    let mut accepted = 0;
    for seed in first..first + inputs {
        let mut files = valid.clone();
        damage(&mut ChaCha8Rng::seed_from_u64(seed), &mut files);
        update(folder.path(), valid, &files);
        MOST.with(|most| most.set(NOW.get()));
        let (before, start) = (NOW.get(), Instant::now());
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            // It may be anything now, but that must be found out in peace.
            let _ = Format::recognise(&path);
            read(&path, &options)
        }));
        let (memory, time) = (MOST.get() - before, start.elapsed());
        let Ok(outcome) = outcome else { panic!("{format}, seed {seed}: the reader panics") };
        assert!(memory < MEMORY, "{format}, seed {seed}: {memory} bytes are allocated");
        assert!(time < TIME, "{format}, seed {seed}: {time:?} pass");
        match outcome {
            Ok(dataset) => {
                accepted += 1;
                // What is read is valid: it can be turned into numbers, or that is refused.
                let encoded = catch_unwind(|| {
                    Encoding::new(&dataset, &FeatureOptions::default())
                        .and_then(|encoding| encoding.batch::<f32>(&dataset))
                        .is_ok()
                });
                assert!(encoded.is_ok(), "{format}, seed {seed}: encoding panics");
            }
            Err(error) => {
                let message = error.to_string();
                assert!(
                    !message.is_empty() && !message.contains('\n') && message.len() < 1000,
                    "{format}, seed {seed}: {message}"
                );
            }
        }
        update(folder.path(), &files, valid);
    }
    println!("{format}: {accepted} of {inputs} inputs are still valid");
    // Damage that is always noticed at the door would test nothing behind it.
    assert!(inputs < 100 || accepted > 0, "{format}: no input was accepted");
}

fn write(folder: &Path, files: &Files) {
    for (name, content) in files {
        std::fs::write(folder.join(name), content).unwrap();
    }
}

/// Makes the folder hold `new` where it holds `old`.
fn update(folder: &Path, old: &Files, new: &Files) {
    for (name, _) in old {
        if !new.iter().any(|(other, _)| name == other) {
            std::fs::remove_file(folder.join(name)).unwrap();
        }
    }
    for (name, content) in new {
        if !old.iter().any(|(other, before)| name == other && content == before) {
            std::fs::write(folder.join(name), content).unwrap();
        }
    }
}

/// Damages one file or two; sometimes one goes missing.
fn damage_files(random: &mut ChaCha8Rng, files: &mut Files) {
    if files.len() > 1 && random.random_ratio(1, 50) {
        let gone = random.random_range(0..files.len());
        files.remove(gone);
    }
    for _ in 0..random.random_range(1..=2) {
        let other = files.choose(random).unwrap().1.clone();
        let file = random.random_range(0..files.len());
        damage(random, &mut files[file].1, &other);
    }
}

/// One to four of: flip, overwrite, insert, delete, repeat, cut, splice, replace a number.
fn damage(random: &mut ChaCha8Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..random.random_range(1..=4) {
        let place = random.random_range(0..=bytes.len());
        let end = (place + random.random_range(0..16)).min(bytes.len());
        match random.random_range(0..12) {
            0 if place < bytes.len() => bytes[place] ^= 1 << random.random_range(0..8),
            1 if place < bytes.len() => bytes[place] = random.random(),
            2 => {
                let text = [" ", ",", "\n", "\r\n", "\t", "-", ".", "\0", "\"", "nan", ":", "é"];
                insert(bytes, place, text.choose(random).unwrap().as_bytes());
            }
            3 => {
                let mut noise = vec![0; random.random_range(1..16)];
                random.fill_bytes(&mut noise);
                insert(bytes, place, &noise);
            }
            4 => drop(bytes.drain(place..end)),
            5 => {
                let piece = bytes[place..end].to_vec();
                insert(bytes, place, &piece);
            }
            6 => bytes.truncate(place),
            7 if !other.is_empty() => {
                let start = random.random_range(0..other.len());
                let end = (start + random.random_range(1..64)).min(other.len());
                insert(bytes, place, &other[start..end]);
            }
            8 => {
                let large = [0, 1, 2, 7, 0x7fff_ffff, 0x8000_0000, 0xffff_fff8, 0xffff_ffff];
                let number: u32 = *large.choose(random).unwrap();
                // Fields of binary formats stand at multiples of 4.
                let place = place / 4 * 4;
                if let Some(field) = bytes.get_mut(place..place + 4) {
                    field.copy_from_slice(&number.to_le_bytes());
                }
            }
            _ => replace_number(random, bytes, place),
        }
    }
}

fn insert(bytes: &mut Vec<u8>, place: usize, piece: &[u8]) {
    bytes.splice(place..place, piece.iter().copied());
}

/// Puts another number in place of the one at `place` or behind it.
fn replace_number(random: &mut ChaCha8Rng, bytes: &mut Vec<u8>, place: usize) {
    let numbers = [
        "0",
        "1",
        "2",
        "3",
        "-1",
        "4",
        "1000000",
        "4294967295",
        "4294967296",
        "-9223372036854775808",
        "9223372036854775807",
        "18446744073709551616",
        "1e18",
        "1e400",
        "-0.5",
        "NaN",
        "inf",
        "1e-400",
        "0.0000000000000000000000000000000001",
        "",
    ];
    let number = numbers.choose(random).unwrap().as_bytes();
    let Some(start) = bytes[place..].iter().position(u8::is_ascii_digit) else { return };
    let start = place + start;
    let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    bytes.splice(start..start + length, number.iter().copied());
}

fn tu_files() -> Files {
    vec![
        ("T_A.txt", b"2, 1\n1, 2\n3,3\n4, 3\n5,4\n".to_vec()),
        ("T_graph_indicator.txt", b"1\n1\n3\n3\n3\n".to_vec()),
        ("T_graph_labels.txt", b"-1\n7\n-1\n".to_vec()),
        ("T_graph_attributes.txt", b"1.5\n2\n3\n".to_vec()),
        ("T_node_labels.txt", b"5, 0\n-3, 0\n5, 1\n5, 2\n1000, 2\n".to_vec()),
        ("T_node_attributes.txt", b"0.5, 1e2\n1,2\n3,4\n5,-6.25\n0, 0".to_vec()),
        ("T_edge_labels.txt", b"1\n2\n3\n4\n2\n".to_vec()),
        ("T_edge_attributes.txt", b"1.5\n2.5\n3.5\n4.5\n0\n".to_vec()),
        ("T_node_targets.txt", b"1\n-1\n-1\n1\n1\n".to_vec()),
    ]
}

#[test]
fn tu_folders() {
    fuzz(Format::Tu, "", &tu_files(), damage_files);
}

fn zip(files: &Files) -> Files {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(vec![]));
    for (name, content) in files {
        writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    vec![("x.zip", writer.finish().unwrap().into_inner())]
}

/// Damages either what is packed or the package.
fn damage_packed(
    random: &mut ChaCha8Rng,
    files: &mut Files,
    content: &Files,
    pack: impl Fn(&Files) -> Files,
) {
    if random.random() {
        let mut content = content.clone();
        damage_files(random, &mut content);
        *files = pack(&content);
    } else {
        damage_files(random, files);
    }
}

#[test]
fn tu_zip_files() {
    let content = tu_files();
    fuzz(Format::Tu, "x.zip", &zip(&content), |random, files| {
        damage_packed(random, files, &content, zip);
    });
}

#[test]
fn gin_files() {
    let text = b"3\n2 5\n0 1 1 0.5\n3 1 0 -1\n0 -2\n3 5\n3 1 0 2\n1 2 0 2 1e3\n1 0 7\n".to_vec();
    fuzz(Format::Gin, "g.txt", &vec![("g.txt", text)], damage_files);
}

#[test]
fn citation_folders() {
    let files = vec![
        ("edges.txt", b"0 1\n2 2\n1 2\n3 0\n".to_vec()),
        ("features.txt", b"4:1 0:0.5\n\n2:1\n7:-2.5 1:1\n".to_vec()),
        ("labels.txt", b"3\n-1\n5\n3\n".to_vec()),
        ("train_idx.txt", b"2\n".to_vec()),
        ("val_idx.txt", b"1\n".to_vec()),
        ("test_idx.txt", b"0\n3\n".to_vec()),
    ];
    fuzz(Format::Citation, "", &files, damage_files);
}

fn npy(rows: usize, cols: usize) -> Vec<u8> {
    let header =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {cols}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    for i in 0..rows * cols {
        bytes.extend((i as f32).to_le_bytes());
    }
    bytes
}

fn table_files() -> Files {
    let nodes = "graph,id,x,colour,y,split\nb,1,0.5,red,yes,train\na,1,1,blue,,\n\
                 b,2,-2,\"red, or so\",no,test\n";
    let edges = "graph,target,source,weight,kind:category\nb,1,2,0.5,1\na,1,1,2,2\nb,2,1,0.5,1\n";
    let graphs = "graph,y\na,1.5\nb,2\nc,\n";
    vec![
        ("nodes.csv", nodes.as_bytes().to_vec()),
        ("edges.csv", edges.as_bytes().to_vec()),
        ("graphs.csv", graphs.as_bytes().to_vec()),
        ("dataset.toml", b"name = \"abc\"\ndirected = true\n".to_vec()),
        ("nodes.npy", npy(3, 2)),
        ("edges.npy", npy(3, 1)),
    ]
}

#[test]
fn tables() {
    fuzz(Format::Tables, "", &table_files(), damage_files);
}

fn gzip(files: &Files) -> Files {
    let packed = |name: &str| match name {
        "nodes.csv" => Some("nodes.csv.gz"),
        "edges.csv" => Some("edges.csv.gz"),
        _ => None,
    };
    let mut all = vec![];
    for (name, content) in files {
        if let Some(name) = packed(name) {
            let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
            encoder.write_all(content).unwrap();
            all.push((name, encoder.finish().unwrap()));
        } else {
            all.push((*name, content.clone()));
        }
    }
    all
}

#[test]
fn gzipped_tables() {
    let content = table_files();
    fuzz(Format::Tables, "", &gzip(&content), |random, files| {
        damage_packed(random, files, &content, gzip);
    });
}

fn data_set() -> Vec<u8> {
    use crate::mat::{dense, sparse, structure};
    let set = |shift: f64| {
        let labels: Vec<f64> = (0..8).map(|i| f64::from(i) + shift).collect();
        structure(
            "",
            &[
                ("graphNum", dense("", 1, 1, &[2.0])),
                ("connMatrix", sparse("", 4, 4, &[(1, 0, 1.0), (0, 1, 1.0), (2, 3, 1.0)])),
                ("nodeLabels", dense("", 2, 4, &labels)),
                ("targets", dense("", 1, 4, &[-1.0, 1.0, 1.0, -1.0])),
                ("maskMatrix", sparse("", 4, 4, &[(0, 0, 1.0), (1, 1, 1.0), (3, 3, 1.0)])),
            ],
        )
    };
    let config = structure("", &[("graphDim", dense("", 1, 1, &[2.0]))]);
    let sets = [("config", config), ("trainSet", set(0.0)), ("testSet", set(0.5))];
    structure("dataSet", &sets)
}

#[test]
fn matlab_structs() {
    let valid = vec![("x.mat", crate::mat::file(&[data_set()], false))];
    fuzz(Format::Matlab, "x.mat", &valid, damage_files);
}

#[test]
fn compressed_matlab_structs() {
    let content = vec![("x.mat", data_set())];
    let pack = |files: &Files| {
        let variables: Vec<Vec<u8>> = files.iter().map(|(_, bytes)| bytes.clone()).collect();
        vec![("x.mat", crate::mat::file(&variables, true))]
    };
    fuzz(Format::Matlab, "x.mat", &pack(&content), |random, files| {
        damage_packed(random, files, &content, pack);
    });
}

#[test]
fn matlab_folders() {
    use crate::mat::{dense, file, sparse};
    let files = vec![
        ("conmattrain.mat", file(&[sparse("c", 6, 6, &[(0, 1, 1.0), (5, 4, 2.0)])], false)),
        ("nodelabtrain.mat", file(&[dense("l", 1, 6, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])], false)),
        ("tartrain.mat", file(&[dense("t", 1, 6, &[0.0, 0.5, 0.0, 1.0, 0.0, 0.0])], false)),
        ("conmattest.mat", file(&[sparse("c", 2, 2, &[(0, 1, 1.5)])], true)),
        ("nodelabtest.mat", file(&[dense("l", 1, 2, &[1.0, 2.0])], true)),
        ("tartest.mat", file(&[dense("t", 1, 2, &[0.5, 0.0])], true)),
    ];
    fuzz(Format::Matlab, "", &files, damage_files);
}

/// What the widest and the longest files of 1 MB cost.
#[test]
fn memory_follows_the_size_of_the_file() {
    let wide = "0 ".repeat(500_000) + "\n";
    let names: Vec<String> = (0..150_000).map(|i| format!("c{i}")).collect();
    let cells = "a,".repeat(names.len());
    let table = format!("{}\n{}\n", names.join(","), cells.trim_end_matches(','));
    let single = |files: &[(&'static str, &str)]| -> Files {
        files.iter().map(|(name, text)| (*name, text.as_bytes().to_vec())).collect()
    };
    let tu = |labels: &str, attributes: &str| {
        single(&[
            ("T_A.txt", ""),
            ("T_graph_indicator.txt", "1\n"),
            ("T_node_labels.txt", labels),
            ("T_node_attributes.txt", attributes),
        ])
    };
    let indicator = "1\n".repeat(500_000);
    let citation = |features: &str| {
        single(&[("edges.txt", ""), ("labels.txt", "1\n"), ("features.txt", features)])
    };
    for (format, path, files) in [
        (Format::Tu, "", tu(&wide, "1\n")),
        (Format::Tu, "", tu(&"511 ".repeat(65_000), "1\n")),
        (Format::Tu, "", tu("1\n", &wide)),
        (Format::Tu, "", single(&[("T_A.txt", ""), ("T_graph_indicator.txt", &indicator)])),
        (Format::Tu, "", single(&[("T_A.txt", &indicator), ("T_graph_indicator.txt", "1\n")])),
        (Format::Tables, "", single(&[("nodes.csv", &table), ("edges.csv", "source,target\n")])),
        (Format::Gin, "g", single(&[("g", &format!("1\n1 0\n0 0 {wide}"))])),
        (Format::Citation, "", citation("16777215:1\n")),
    ] {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &files);
        let size: usize = files.iter().map(|(_, content)| content.len()).sum();
        MOST.with(|most| most.set(NOW.get()));
        let before = NOW.get();
        let outcome = read(&folder.path().join(path), &ReadOptions { format: Some(format) });
        let memory = (MOST.get() - before).cast_unsigned();
        assert!(memory < (4 << 20) + 200 * size, "{format}: {memory} bytes for {size}");
        drop(outcome);
    }
}
