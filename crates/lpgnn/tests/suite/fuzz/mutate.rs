//! How inputs are damaged: byte by byte, or along their structure.

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use safetensors::Dtype;
use serde_json::Value;

use super::files::Files;
use super::signed::{Array, Contents};

/// Numbers at which something may go wrong.
const NUMBERS: [&str; 22] = [
    "0",
    "1",
    "2",
    "3",
    "-1",
    "4",
    "60000",
    "65536",
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

/// Damages one file or two; sometimes one goes missing.
pub(super) fn damage_files(random: &mut ChaCha8Rng, files: &mut Files) {
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

/// One to four of: flip, overwrite, insert, delete, repeat, cut, splice, move a line, replace a number.
pub(super) fn damage(random: &mut ChaCha8Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..random.random_range(1..=4) {
        let place = random.random_range(0..=bytes.len());
        let end = (place + random.random_range(0..16)).min(bytes.len());
        match random.random_range(0..13) {
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
            9 => move_line(random, bytes),
            _ => replace_number(random, bytes, place),
        }
    }
}

fn insert(bytes: &mut Vec<u8>, place: usize, piece: &[u8]) {
    bytes.splice(place..place, piece.iter().copied());
}

/// Repeats a line somewhere else, or moves it there.
fn move_line(random: &mut ChaCha8Rng, bytes: &mut Vec<u8>) {
    let mut lines: Vec<Vec<u8>> =
        bytes.split_inclusive(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
    if lines.is_empty() {
        return;
    }
    let from = random.random_range(0..lines.len());
    let line = if random.random() { lines.remove(from) } else { lines[from].clone() };
    lines.insert(random.random_range(0..=lines.len()), line);
    *bytes = lines.concat();
}

/// Puts another number in place of the one at `place` or behind it.
fn replace_number(random: &mut ChaCha8Rng, bytes: &mut Vec<u8>, place: usize) {
    let number = NUMBERS.choose(random).unwrap().as_bytes();
    let Some(start) = bytes[place..].iter().position(u8::is_ascii_digit) else { return };
    let start = place + start;
    let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    bytes.splice(start..start + length, number.iter().copied());
}

/// Damages either what is packed or the package.
pub(super) fn damage_packed(
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

/// One to three of: another number, another value of the same document, another kind of value, an
/// entry less, an entry twice, a list a hundred times as long.
pub(super) fn damage_json(random: &mut ChaCha8Rng, document: &mut Value) {
    for _ in 0..random.random_range(1..=3) {
        let mut paths = vec![];
        collect_paths(String::new(), document, &mut paths);
        let other = paths.choose(random).and_then(|path| document.pointer(path)).cloned();
        let path = paths.choose(random).cloned().unwrap_or_default();
        let Some(place) = document.pointer_mut(&path) else { continue };
        match random.random_range(0..8) {
            0..=2 => {
                let text = NUMBERS.choose(random).unwrap();
                *place = serde_json::from_str(text).unwrap_or_else(|_| Value::from(*text));
            }
            3 => *place = other.unwrap_or_default(),
            4 => {
                let kinds = [
                    Value::Null,
                    true.into(),
                    "".into(),
                    "none".into(),
                    Value::from("é\u{1b}[31m"),
                ];
                *place = kinds.choose(random).unwrap().clone();
            }
            5 => match place {
                Value::Object(entries) => {
                    let key =
                        entries.keys().collect::<Vec<_>>().choose(random).map(|key| (*key).clone());
                    let _ = key.and_then(|key| entries.remove(&key));
                }
                Value::Array(items) => drop(items.pop()),
                _ => *place = Value::Array(vec![]),
            },
            6 => match place {
                Value::Object(entries) => drop(entries.insert("more".into(), 1.into())),
                Value::Array(items) => items.extend(items.first().cloned()),
                _ => *place = Value::Array(vec![place.clone()]),
            },
            _ => {
                if let Value::Array(items) = place
                    && items.len() < 50
                {
                    *items = items.iter().cycle().take(100 * items.len()).cloned().collect();
                }
            }
        }
    }
}

/// The pointers to all values of a document.
fn collect_paths(path: String, value: &Value, paths: &mut Vec<String>) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                let key = key.replace('~', "~0").replace('/', "~1");
                collect_paths(format!("{path}/{key}"), value, paths);
            }
        }
        Value::Array(items) => {
            for (i, value) in items.iter().enumerate() {
                collect_paths(format!("{path}/{i}"), value, paths);
            }
        }
        _ => {}
    }
    paths.push(path);
}

/// Damages a model or a checkpoint: the bytes of the file, or what is behind its checksum.
pub(super) fn damage_signed(random: &mut ChaCha8Rng, file: &mut Vec<u8>) {
    if random.random_ratio(1, 4) {
        let other = file.clone();
        return damage(random, file, &other);
    }
    let Some(mut contents) = Contents::read(file) else { return };
    if random.random_ratio(2, 3)
        && let Ok(mut about) = serde_json::from_str(&contents.about)
    {
        damage_json(random, &mut about);
        contents.about = about.to_string();
    }
    if random.random_ratio(1, 2) {
        damage_arrays(random, &mut contents);
    }
    if let Some(damaged) = contents.write() {
        *file = damaged;
    }
}

/// One to three of: strange numbers, another shape, another type, an array less, an array more.
fn damage_arrays(random: &mut ChaCha8Rng, contents: &mut Contents) {
    let floats = [0.0, -0.0, 1e-45, 1.0, -1e3, 3e38, -3e38, f32::INFINITY, f32::NAN];
    for _ in 0..random.random_range(1..=3) {
        let names: Vec<String> = contents.arrays.keys().cloned().collect();
        let Some(name) = names.choose(random) else { return };
        let kind = random.random_range(0..8);
        if kind == 0 {
            contents.arrays.remove(name);
            continue;
        }
        let other = names.choose(random).and_then(|name| contents.arrays.get(name)).cloned();
        if kind == 1 {
            contents.arrays.extend(other.map(|other| ("more".into(), other)));
            continue;
        }
        let array = contents.arrays.get_mut(name).unwrap();
        let Array { dtype, shape, bytes } = array;
        match kind {
            5 => shape.reverse(),
            2 => shape.push(1),
            3 => *dtype = if *dtype == Dtype::F32 { Dtype::I32 } else { Dtype::U64 },
            4 => *array = other.unwrap(),
            _ => {
                let number = floats.choose(random).unwrap().to_le_bytes();
                let all = random.random_ratio(1, 4);
                let place = random.random_range(0..=bytes.len() / 4);
                for (i, entry) in bytes.chunks_exact_mut(4).enumerate() {
                    if all || i == place {
                        entry.copy_from_slice(&number);
                    }
                }
            }
        }
    }
}
