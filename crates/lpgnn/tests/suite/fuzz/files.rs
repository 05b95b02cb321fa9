//! The files of an input: in a folder, or joined to one sequence of bytes.

#![allow(dead_code, reason = "the fuzzers in `fuzz/` split, the tests join")]

use std::path::Path;

/// Files by name; a folder as a reader finds it.
pub(crate) type Files = Vec<(&'static str, Vec<u8>)>;

/// Between the files of an input that is one sequence of bytes.
const MARK: &[u8] = b"\n\xff\xfe\xff\n";

/// All contents, in order.
pub(crate) fn join(files: &Files) -> Vec<u8> {
    let contents: Vec<&[u8]> = files.iter().map(|(_, content)| content.as_slice()).collect();
    contents.join(MARK)
}

/// The files of these names; those at the end may be missing.
pub(crate) fn split(mut bytes: &[u8], names: &[&'static str]) -> Files {
    let mut files = vec![];
    for &name in names {
        let end = bytes.windows(MARK.len()).position(|window| window == MARK);
        files.push((name, bytes[..end.unwrap_or(bytes.len())].to_vec()));
        let Some(end) = end else { break };
        bytes = &bytes[end + MARK.len()..];
    }
    files
}

pub(crate) fn write(folder: &Path, files: &Files) {
    for (name, content) in files {
        std::fs::write(folder.join(name), content).unwrap();
    }
}

/// Makes the folder hold `new` where it holds `old`.
pub(crate) fn update(folder: &Path, old: &Files, new: &Files) {
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

/// All files of a folder but its lock, in the order of their names, those of arrays last.
pub(crate) fn read(folder: &Path) -> Files {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name != ".lock").collect();
    names.sort_by_key(|name| (name.ends_with(".safetensors"), name.clone()));
    let file = |name: String| {
        let content = std::fs::read(folder.join(&name)).unwrap();
        (&*name.leak(), content)
    };
    names.into_iter().map(file).collect()
}
