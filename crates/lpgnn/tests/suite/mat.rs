//! Writes MATLAB level 5 files, for tests.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::io::Write;

fn element(kind: u32, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap();
    let mut bytes = [kind.to_le_bytes(), length.to_le_bytes()].concat();
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

fn integers(values: &[usize]) -> Vec<u8> {
    let four = |&x: &usize| u32::try_from(x).unwrap().to_le_bytes();
    element(5, &values.iter().flat_map(four).collect::<Vec<u8>>())
}

fn doubles(values: &[f64]) -> Vec<u8> {
    element(9, &values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
}

fn matrix(class: u8, name: &str, rows: usize, cols: usize, content: &[Vec<u8>]) -> Vec<u8> {
    let mut data = element(6, &[class, 0, 0, 0, 0, 0, 0, 0]);
    data.extend(integers(&[rows, cols]));
    data.extend(element(1, name.as_bytes()));
    data.extend(content.concat());
    element(14, &data)
}

/// A full matrix, column by column.
pub(crate) fn dense(name: &str, rows: usize, cols: usize, values: &[f64]) -> Vec<u8> {
    matrix(6, name, rows, cols, &[doubles(values)])
}

/// A sparse matrix from row, column and value, in order of columns.
pub(crate) fn sparse(
    name: &str,
    rows: usize,
    cols: usize,
    entries: &[(usize, usize, f64)],
) -> Vec<u8> {
    let row_of: Vec<usize> = entries.iter().map(|entry| entry.0).collect();
    let before = |col| entries.iter().filter(|entry| entry.1 < col).count();
    let starts: Vec<usize> = (0..=cols).map(before).collect();
    let values: Vec<f64> = entries.iter().map(|entry| entry.2).collect();
    matrix(5, name, rows, cols, &[integers(&row_of), integers(&starts), doubles(&values)])
}

/// A struct with these fields.
pub(crate) fn structure(name: &str, fields: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut names = vec![];
    for (field, _) in fields {
        names.extend(field.as_bytes());
        names.resize(names.len().next_multiple_of(32), 0);
    }
    // The length of names is a small element: its data are in the tag.
    let length = [[5, 0, 4, 0], [32, 0, 0, 0]].concat();
    let mut content = vec![length, element(1, &names)];
    content.extend(fields.iter().map(|(_, value)| value.clone()));
    matrix(2, name, 1, 1, &content)
}

/// A file with these variables.
pub(crate) fn file(variables: &[Vec<u8>], compress: bool) -> Vec<u8> {
    let mut bytes = b"MATLAB 5.0 MAT-file, made by a test".to_vec();
    bytes.resize(124, b' ');
    bytes.extend(b"\0\x01IM");
    for variable in variables {
        if compress {
            let mut encoder = flate2::write::ZlibEncoder::new(vec![], flate2::Compression::best());
            encoder.write_all(variable).unwrap();
            let packed = encoder.finish().unwrap();
            let length = u32::try_from(packed.len()).unwrap();
            bytes.extend([15_u32.to_le_bytes(), length.to_le_bytes()].concat());
            bytes.extend(packed);
        } else {
            bytes.extend(variable);
        }
    }
    bytes
}
