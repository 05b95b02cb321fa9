use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use ureq::Agent;

use super::cache::{Cache, is_name};
use super::known::{PUBLISHED, nearest};
use super::read::{Format, ReadOptions, read};
use crate::Error;

/// The URL of the TU collection; a data set is `NAME.zip` below it.
pub const TU_COLLECTION: &str = "https://www.chrsmrrs.com/graphkerneldatasets";

/// Options for [`fetch`].
#[derive(Clone, Debug, PartialEq)]
pub struct FetchOptions {
    /// The URL of the folder with the files.
    pub base_url: String,
    /// The time-out: how long the server may be silent.
    pub patience: Duration,
    /// The deadline: how long all attempts may take together, however busy the server is.
    pub max_time: Duration,
    /// The number of attempts.
    pub attempts: u32,
    /// The pause before the second attempt; it doubles with each attempt.
    pub pause: Duration,
    /// The maximum size of a file in bytes.
    pub largest: u64,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            base_url: TU_COLLECTION.to_owned(),
            patience: Duration::from_secs(30),
            max_time: Duration::from_secs(3600),
            attempts: 4,
            pause: Duration::from_secs(1),
            largest: 1 << 30,
        }
    }
}

/// Progress of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchEvent<'a> {
    /// A request is sent.
    Asking {
        /// The URL.
        url: &'a str,
    },
    /// Data have arrived.
    Received {
        /// Bytes so far.
        bytes: u64,
        /// Bytes in total, if the server says so.
        total: Option<u64>,
    },
    /// An attempt failed, and there will be another one.
    Retrying {
        /// The problem.
        problem: &'a str,
        /// The pause before the next attempt.
        pause: Duration,
    },
    /// The download is complete and is being validated.
    Checking,
}

/// A downloaded data set.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Fetched {
    /// Its name.
    pub name: String,
    /// The path of the file.
    pub path: PathBuf,
    /// Size of the file.
    pub bytes: u64,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
}

/// Downloads a data set of the TU collection into the cache, unless it is there already.
///
/// The data go to an unnamed file until the download is complete and has been validated by reading
/// it; only then does the file get its name. So an interruption never leaves an incomplete file.
///
/// # Errors
///
/// [`Error::Fetch`] with the cause, and where to put the file by hand; [`Error::Io`] if the
/// cache cannot be written; those of [`read`] if the file is not a TU data set.
pub fn fetch(
    name: &str,
    cache: &Cache,
    options: &FetchOptions,
    observer: &mut dyn FnMut(FetchEvent<'_>),
) -> Result<Fetched, Error> {
    if !is_name(name) {
        return Err(Error::Option {
            option: "name",
            value: format!("“{name}”"),
            expected: "the name of a published set has letters, digits, - and _ only".into(),
        });
    }
    let path = cache.zip(name);
    if path.is_file() {
        let file = File::open(&path).map_err(io_error("read", &path))?;
        return describe(name, &path, file);
    }
    let folder = cache.folder();
    std::fs::create_dir_all(folder).map_err(io_error("create", folder))?;

    let url = format!("{}/{name}.zip", options.base_url.trim_end_matches('/'));
    let failed = |failure: Failure| Error::Fetch {
        url: url.clone(),
        problem: failure.problem,
        path: path.clone(),
        hint: if failure.missing { hint(name) } else { String::new() },
    };
    let mut nameless = download_patiently(&url, folder, options, observer, failed)?;

    observer(FetchEvent::Checking);
    let mut builder = tempfile::Builder::new();
    let prefix = format!(".{name}-");
    builder.prefix(&prefix).suffix(".part.zip");
    #[cfg(unix)]
    {
        // A temporary file is private to its owner, a cache may be shared; the umask still applies.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder).map_err(io_error("write", folder))?;
    nameless
        .rewind()
        .and_then(|()| io::copy(&mut nameless, &mut file))
        .and_then(|_| file.as_file().sync_all())
        .map_err(io_error("write", &path))?;
    check(&file, &url)?;
    let file = file.persist(&path).map_err(|error| Error::Io {
        action: "write",
        path: path.clone(),
        source: error.error,
    })?;
    describe(name, &path, file)
}

/// Why an attempt failed.
struct Failure {
    problem: String,
    /// Whether another attempt may succeed.
    passing: bool,
    /// Whether the server has no such file.
    missing: bool,
}

impl Failure {
    fn passing(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), passing: true, missing: false }
    }

    fn lasting(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), passing: false, missing: false }
    }
}

fn download_patiently(
    url: &str,
    folder: &Path,
    options: &FetchOptions,
    observer: &mut dyn FnMut(FetchEvent<'_>),
    failed: impl Fn(Failure) -> Error,
) -> Result<File, Error> {
    let start = Instant::now();
    let left = || options.max_time.saturating_sub(start.elapsed());
    let late =
        || Failure::lasting(format!("it takes more than {} s", options.max_time.as_secs_f64()));
    let agent: Agent = Agent::config_builder()
        .timeout_resolve(Some(options.patience))
        .timeout_connect(Some(options.patience))
        .timeout_recv_response(Some(options.patience))
        .timeout_per_read(Some(options.patience))
        .http_status_as_error(false)
        .user_agent(concat!("lpgnn/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let mut pause = options.pause;
    for attempt in 1.. {
        observer(FetchEvent::Asking { url });
        // It has no name, so the operating system removes it no matter how the program ends.
        let mut file = tempfile::tempfile_in(folder).map_err(io_error("write", folder))?;
        match download(&agent, url, options.largest, left(), &mut file, observer) {
            Ok(()) => return Ok(file),
            Err(_) if left() <= Duration::ZERO => return Err(failed(late())),
            Err(failure) if failure.passing && left() <= pause => return Err(failed(failure)),
            Err(failure) if failure.passing && attempt < options.attempts => {
                observer(FetchEvent::Retrying { problem: &failure.problem, pause });
                thread::sleep(pause);
                pause = pause.saturating_mul(2);
            }
            Err(failure) => return Err(failed(failure)),
        }
    }
    unreachable!("the loop ends by a return")
}

/// One attempt.
fn download(
    agent: &Agent,
    url: &str,
    largest: u64,
    left: Duration,
    file: &mut File,
    observer: &mut dyn FnMut(FetchEvent<'_>),
) -> Result<(), Failure> {
    let request = agent.get(url).config().timeout_global(Some(left)).build();
    let response = request.call().map_err(|error| match error {
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
            Failure::lasting(format!("it is not a URL: {error}"))
        }
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) | ureq::Error::TlsRequired => {
            Failure::lasting(format!("no safe connection: {error}"))
        }
        ureq::Error::TooManyRedirects | ureq::Error::RedirectFailed => {
            Failure::lasting(error.to_string())
        }
        error => Failure::passing(sentence(&error)),
    })?;
    let status = response.status();
    if !status.is_success() {
        let problem = format!("the server answers {status}");
        let passing = status.is_server_error() || [408, 429].contains(&status.as_u16());
        return Err(Failure { problem, passing, missing: status.as_u16() == 404 });
    }
    let too_large = || Failure::lasting(format!("it has more than {largest} bytes"));
    let mut body = response.into_body();
    let total = body.content_length();
    if total.is_some_and(|total| total > largest) {
        return Err(too_large());
    }
    let mut reader = body.as_reader();
    let mut buffer = vec![0; 64 << 10];
    let mut bytes = 0;
    loop {
        let count = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let problem = sentence(&ureq::Error::from(error));
                return Err(Failure::passing(format!("{problem} after {bytes} bytes")));
            }
        };
        bytes += count as u64;
        if bytes > largest {
            return Err(too_large());
        }
        file.write_all(&buffer[..count])
            .map_err(|error| Failure::lasting(format!("it cannot be written: {error}")))?;
        observer(FetchEvent::Received { bytes, total });
    }
    match total {
        Some(total) if bytes < total => {
            Err(Failure::passing(format!("the connection ended after {bytes} of {total} bytes")))
        }
        _ => Ok(()),
    }
}

/// The error of ureq as part of a sentence.
fn sentence(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => "the server is silent".into(),
        ureq::Error::HostNotFound => "the server does not exist, or there is no network".into(),
        ureq::Error::ConnectionFailed => "there is no connection".into(),
        ureq::Error::Io(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused => "the connection was refused".into(),
            io::ErrorKind::UnexpectedEof => "the connection ended early".into(),
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "the server is silent".into(),
            _ => error.to_string(),
        },
        error => error.to_string(),
    }
}

fn hint(name: &str) -> String {
    match nearest(name, PUBLISHED.iter().map(|set| set.name)) {
        Some(meant) if meant != name => format!("; did you mean {meant}?"),
        _ => String::new(),
    }
}

/// # Errors
///
/// [`Error::Input`] with the URL in place of the name of the temporary file.
fn check(file: &NamedTempFile, url: &str) -> Result<(), Error> {
    let options = ReadOptions { format: Some(Format::Tu) };
    match read(file.path(), &options) {
        Ok(_) => Ok(()),
        Err(Error::Input { place, problem }) => {
            Err(Error::Input { place: place.renamed(file.path(), Path::new(url)), problem })
        }
        Err(other) => Err(other),
    }
}

fn describe(name: &str, path: &Path, mut file: File) -> Result<Fetched, Error> {
    let mut hash = Sha256::new();
    let mut bytes = 0;
    let mut buffer = vec![0; 64 << 10];
    file.rewind().map_err(io_error("read", path))?;
    loop {
        match file.read(&mut buffer).map_err(io_error("read", path))? {
            0 => break,
            count => {
                bytes += count as u64;
                hash.update(&buffer[..count]);
            }
        }
    }
    let sha256 = hash.finalize().iter().fold(String::new(), |text, byte| text + &hex(*byte));
    Ok(Fetched { name: name.to_owned(), path: path.to_owned(), bytes, sha256 })
}

fn hex(byte: u8) -> String {
    format!("{byte:02x}")
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { action, path, source }
}
