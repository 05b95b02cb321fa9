use super::*;

#[test]
fn what_is_not_recognised_is_told() {
    let empty = folder(&[]);
    assert_eq!(
        refusal(empty.path(), empty.path()),
        "DIR: holds no graphs that are recognised: it has neither NAME_A.txt (tu), \
         conmattrain.mat (matlab), edges.txt with labels.txt (citation), nodes.csv (tables), \
         nor a folder train with NAME_A.txt"
    );
    assert_eq!(refusal(empty.path(), &empty.path().join("x")), "x: does not exist");
    let text = folder(&[("x", "hello\n")]);
    assert_eq!(
        refusal(text.path(), &text.path().join("x")),
        "x: is no file of graphs that is recognised: it starts neither like a zip file (tu), a \
         MATLAB 5.0 file (matlab), nor with a number of graphs and then a number of nodes and a \
         label (gin)"
    );
    let both = folder(&[("nodes.csv", ""), ("X_A.txt", "")]);
    assert_eq!(
        refusal(both.path(), both.path()),
        "DIR: has the files of the formats tu and tables: tell which is meant"
    );
}

#[test]
fn a_format_is_called_by_its_name() {
    for format in Format::ALL {
        assert_eq!(format.as_str().parse::<Format>().unwrap(), format);
    }
    assert_eq!(
        "csv".parse::<Format>().unwrap_err().to_string(),
        "format is csv, but it is one of tu, gin, matlab, citation, tables"
    );
}
