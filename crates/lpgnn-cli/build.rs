//! Tells the program which commit it was built from, where there is one to tell.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=LPGNN_COMMIT");
    // Packagers, who build without the repository, may say it themselves.
    let commit = std::env::var("LPGNN_COMMIT").ok().or_else(|| {
        for file in ["HEAD", "refs"] {
            if let Some(path) = git(&["rev-parse", "--git-path", file]) {
                println!("cargo:rerun-if-changed={path}");
            }
        }
        let commit = git(&["rev-parse", "--short=9", "HEAD"])?;
        // A result that no commit gives says so.
        let sources = ["src", "../lpgnn/src", "../lpgnn-baselines/src", "../../Cargo.lock"];
        sources.iter().for_each(|path| println!("cargo:rerun-if-changed={path}"));
        let changes = git(&[&["status", "--porcelain", "--"], &sources[..]].concat())?;
        Some(if changes.is_empty() { commit } else { format!("{commit}+changes") })
    });
    println!("cargo:rustc-env=LPGNN_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
