//! The transcripts in `tests/cmd`, which are the manual: `TRYCMD=overwrite` writes what is said now.

#[test]
fn commands_do_what_their_transcripts_say() {
    trycmd::TestCases::new()
        .env("LPGNN_CACHE", "no-cache")
        .env("LPGNN_MIRROR", "http://127.0.0.1:1")
        .case("tests/cmd/*.md");
}
