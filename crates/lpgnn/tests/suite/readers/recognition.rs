use super::*;

#[test]
fn what_is_not_recognised_is_told() {
    let empty = folder(&[]);
    assert_eq!(
        refusal(empty.path(), empty.path()),
        "DIR: contains no data set in a known format: it has neither NAME_A.txt (tu), \
         conmattrain.mat (matlab), edges.txt with labels.txt (citation), raw/edge.csv (ogb), \
         nodes.csv (tables), nor a folder train with NAME_A.txt"
    );
    assert_eq!(refusal(empty.path(), &empty.path().join("x")), "x: does not exist");
    let text = folder(&[("x", "hello\n")]);
    assert_eq!(
        refusal(text.path(), &text.path().join("x")),
        "x: is not a data set in a known format: it starts neither like a zip file (tu, npz), a \
         MATLAB 5.0 file (matlab), JSON (node-link), nor with a number of graphs and then a \
         number of nodes and a label (gin)"
    );
    let both = folder(&[("nodes.csv", ""), ("X_A.txt", "")]);
    assert_eq!(
        refusal(both.path(), both.path()),
        "DIR: has files of the formats tu and tables: choose one with --format"
    );
}

#[test]
fn a_folder_is_no_file_and_a_file_no_folder() {
    let folder = folder(&[("x", "1\n")]);
    let file = folder.path().join("x");
    for (format, path, problem) in [
        (Format::Gin, folder.path(), "is a directory, but a file is expected"),
        (Format::Tables, &file, "is a file, but the format tables is a folder"),
        (Format::Citation, &file, "is a file, but the format citation is a folder"),
        (Format::Tu, &file, "cannot be read as a zip file: "),
        (Format::Npz, &file, "cannot be read as a zip file: "),
        (Format::Npz, folder.path(), "is a directory, but a file is expected"),
        (Format::Ogb, &file, "is a file, but the format ogb is a folder"),
        (Format::Ogb, folder.path(), "contains no OGB data set: "),
        (Format::NodeLink, &file, "is not node-link JSON: "),
        (Format::NodeLink, folder.path(), "is a directory, but a file is expected"),
        (Format::Matlab, &file, "does not start with “MATLAB 5.0”"),
    ] {
        let error = read(path, &ReadOptions { format: Some(format) }).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn a_format_is_called_by_its_name() {
    for format in Format::ALL {
        assert_eq!(format.as_str().parse::<Format>().unwrap(), format);
    }
    assert_eq!(
        "csv".parse::<Format>().unwrap_err().to_string(),
        "format is csv, but it is one of tu, gin, matlab, citation, npz, ogb, node-link, tables"
    );
}
