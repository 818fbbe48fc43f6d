//! An object store with S3's protocol, for lakes. Keys, region and endpoint come from the environment
//! (`AWS_ACCESS_KEY_ID` and so on), the container or the machine, as in other programs.

use std::future::Future;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use lake_store::{Before, Entry, Objects};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientConfigKey, ClientOptions, Error, GetOptions, GetRange, ObjectStore,
    ObjectStoreExt, PutMode, RetryConfig, UpdateVersion,
};
use tokio::runtime::Handle;
use url::{Host, Url};

use crate::stored_lake::StoredLake;

/// Bytes per put or read.
const PART_BYTES: u64 = 8 << 20;
/// Timeout of a call with all its retries.
const MAX_TIME: Duration = Duration::from_secs(180);
/// Timeout of a call that lists or removes any number of objects, a thousand per request.
const MAX_TIME_OF_MANY: Duration = Duration::from_secs(3600);
/// Max retries of temporary errors, and the min delay before the first; delays grow to some seconds.
const MAX_RETRIES: usize = 10;
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// Number of concurrent reads.
const AT_A_TIME: usize = 16;
/// Max objects of a lake.
const MAX_LISTED: usize = 1 << 22;
/// The service that has keys for programs on a cloud machine, and the timeout of its first reply.
const METADATA: SocketAddr =
    SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(169, 254, 169, 254)), 80);
const METADATA_TIME: Duration = Duration::from_secs(2);

const NO_KEYS: &str = "no keys for the store: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";

/// A folder of a bucket.
#[derive(Clone, Debug)]
pub(crate) struct S3 {
    store: Arc<AmazonS3>,
    bucket: Url,
    folder: String,
    runtime: Handle,
}

impl S3 {
    /// Configured by the environment.
    ///
    /// # Errors
    /// When that describes no store, or there are no keys.
    pub(crate) fn for_lake(lake: &StoredLake, runtime: Handle) -> io::Result<Self> {
        let (bucket, folder) = lake.bucket_and_folder();
        let options = ClientOptions::new()
            .with_timeout(Duration::from_secs(60))
            .with_connect_timeout(Duration::from_secs(5));
        let retries = RetryConfig {
            max_retries: MAX_RETRIES,
            retry_timeout: MAX_TIME,
            backoff: BackoffConfig { init_backoff: FIRST_WAIT, ..BackoffConfig::default() },
        };
        // Explicit options come first, because the environment may override them.
        let from_environment = std::env::vars().filter(|(name, _)| name.starts_with("AWS_"));
        let mut builder = AmazonS3Builder::new().with_client_options(options);
        for (name, value) in from_environment {
            if let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
                builder = builder.with_config(key, value);
            }
        }
        let endpoint = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint];
        let endpoint = endpoint.iter().find_map(|key| builder.get_config_value(key));
        let may_be_plain = AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp);
        let may_be_plain =
            builder.get_config_value(&may_be_plain).is_some_and(|value| value == "true");
        if let Some(endpoint) = endpoint {
            // With TLS, no redirection leads to an unencrypted address.
            if is_plain(&endpoint, may_be_plain)? {
                builder = builder.with_allow_http(true);
            }
        }
        let known = |key| builder.get_config_value(&key).is_some();
        if !known(AmazonS3ConfigKey::AccessKeyId)
            && !known(AmazonS3ConfigKey::WebIdentityTokenFile)
            && !known(AmazonS3ConfigKey::ContainerCredentialsRelativeUri)
            && !known(AmazonS3ConfigKey::ContainerCredentialsFullUri)
            && !known(AmazonS3ConfigKey::SkipSignature)
            && TcpStream::connect_timeout(&METADATA, METADATA_TIME).is_err()
        {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, NO_KEYS));
        }
        let store = builder.with_bucket_name(bucket).with_retry(retries).build();
        let store = store.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let bucket = Url::parse(&format!("s3://{bucket}")).map_err(io::Error::other)?;
        Ok(Self { store: Arc::new(store), bucket, folder: folder.to_owned(), runtime })
    }

    /// The bucket, and its client.
    pub(crate) fn store(&self) -> (&Url, Arc<dyn ObjectStore>) {
        (&self.bucket, Arc::clone(&self.store) as _)
    }

    /// The key in the bucket of a name in the lake.
    fn key(&self, name: &str) -> String {
        if self.folder.is_empty() { name.to_owned() } else { format!("{}/{name}", self.folder) }
    }

    /// The address of a file.
    pub(crate) fn url(&self, file: &Entry) -> String {
        format!("{}/{}", self.bucket.as_str().trim_end_matches('/'), self.key(&file.name))
    }

    fn path(&self, name: &str) -> io::Result<Path> {
        Path::parse(self.key(name)).map_err(io::Error::other)
    }

    fn wait<T>(&self, call: impl Future<Output = object_store::Result<T>>) -> io::Result<T> {
        self.wait_for(MAX_TIME, call)
    }

    fn wait_for<T>(
        &self,
        most: Duration,
        call: impl Future<Output = object_store::Result<T>>,
    ) -> io::Result<T> {
        let call = async {
            match tokio::time::timeout(most, call).await {
                Ok(done) => done.map_err(io_error),
                Err(_) => {
                    let why = format!("no answer within {most:?}");
                    Err(io::Error::new(io::ErrorKind::TimedOut, why))
                }
            }
        };
        tokio::task::block_in_place(|| self.runtime.block_on(call))
    }

    /// Puts an object if there is none, or the known one. If the reply is lost, it checks the existing object.
    fn put_where(&self, path: &Path, bytes: Vec<u8>, mode: &PutMode) -> io::Result<Option<String>> {
        let body = bytes::Bytes::from(bytes);
        let mut tried = 0;
        loop {
            let put = self.store.put_opts(path, body.clone().into(), mode.clone().into());
            let error = match self.wait(put) {
                Ok(done) => return Ok(done.e_tag),
                Err(error) => error,
            };
            // Only equal content can be its own object.
            if let Some((there, version)) = self.there(path)?
                && there == body
            {
                return Ok(version);
            }
            tried += 1;
            let is_lost = matches!(error.kind(), io::ErrorKind::Other | io::ErrorKind::TimedOut);
            if !is_lost || tried > 2 {
                return Err(error);
            }
        }
    }

    /// The object at a path, with its version.
    fn there(&self, path: &Path) -> io::Result<Option<(bytes::Bytes, Option<String>)>> {
        let read = self.wait(async {
            let found = self.store.get(path).await?;
            let version = found.meta.e_tag.clone();
            Ok((found.bytes().await?, version))
        });
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    fn put_in_parts(
        &self,
        path: &Path,
        bytes: u64,
        body: &mut dyn Read,
    ) -> io::Result<Option<String>> {
        let mut upload = self.wait(self.store.put_multipart(path))?;
        let mut put = 0;
        let mut all = || {
            while put < bytes {
                let part = part_of(body, (bytes - put).min(PART_BYTES))?;
                put += part.len() as u64;
                self.wait(upload.put_part(part.into()))?;
            }
            Ok(())
        };
        match all() {
            Ok(()) => self.wait(upload.complete()).map(|done| done.e_tag),
            Err(error) => {
                // A rule of the bucket, if any, removes the parts that stay.
                let _ = self.wait(upload.abort());
                Err(error)
            }
        }
    }

    async fn get(
        &self,
        file: &Entry,
        range: Option<GetRange>,
    ) -> object_store::Result<bytes::Bytes> {
        let path = Path::parse(self.key(&file.name))?;
        let options = GetOptions { range, if_match: file.version.clone(), ..GetOptions::default() };
        self.store.get_opts(&path, options).await?.bytes().await
    }
}

/// Whether an endpoint is unencrypted. Refuses an invalid address, or one whose traffic others could read.
fn is_plain(endpoint: &str, may_be_plain: bool) -> io::Result<bool> {
    let bad = |why| {
        let why = format!("AWS_ENDPOINT_URL={endpoint}: {why}");
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    };
    let url = Url::parse(endpoint).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some(url) = url else { return bad("no address: write https://HOST:PORT") };
    let is_own_machine = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    let is_plain = url.scheme() == "http";
    if is_plain && !is_own_machine && !may_be_plain {
        return bad(
            "others may read what is sent without TLS: set AWS_ALLOW_HTTP=true if they may",
        );
    }
    Ok(is_plain)
}

fn part_of(body: &mut dyn Read, bytes: u64) -> io::Result<Vec<u8>> {
    let mut part = Vec::new();
    if body.take(bytes).read_to_end(&mut part)? as u64 != bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(part)
}

fn io_error(error: Error) -> io::Error {
    let kind = match &error {
        Error::NotFound { .. } => io::ErrorKind::NotFound,
        Error::AlreadyExists { .. } | Error::Precondition { .. } => io::ErrorKind::AlreadyExists,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            io::ErrorKind::PermissionDenied
        }
        Error::NotImplemented { .. } | Error::NotSupported { .. } => io::ErrorKind::Unsupported,
        _ => io::ErrorKind::Other,
    };
    let why = match kind {
        io::ErrorKind::AlreadyExists => "another run has changed it meanwhile".to_owned(),
        _ => in_words(&error.to_string()),
    };
    io::Error::new(kind, why)
}

/// The store's error; the other lines of its message only concern its developers.
fn in_words(error: &str) -> String {
    // The metadata service, or a proxy in its place, has no keys.
    if error.contains(&format!("http://{}/", METADATA.ip())) {
        return NO_KEYS.to_owned();
    }
    let element = |name: &str| {
        let (_, rest) = error.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(text, _)| text)
    };
    match (element("Code"), element("Message")) {
        (Some(code), message) => {
            format!("the store says {code}: {}", message.unwrap_or("it gives no reason"))
        }
        (None, _) => match error.rsplit_once("Error performing ") {
            Some((_, call)) => format!("no answer to {}", call.trim_end()),
            None => error.trim_end().to_owned(),
        },
    }
}

impl Objects for S3 {
    fn put(
        &self,
        name: &str,
        bytes: u64,
        body: &mut dyn Read,
        before: &Before,
    ) -> io::Result<Option<String>> {
        let path = self.path(name)?;
        let mode = match before {
            Before::Anything if bytes > PART_BYTES => return self.put_in_parts(&path, bytes, body),
            Before::Anything => PutMode::Overwrite,
            Before::Nothing => PutMode::Create,
            Before::Version(version) => {
                PutMode::Update(UpdateVersion { e_tag: Some(version.clone()), version: None })
            }
        };
        if bytes > PART_BYTES {
            return Err(io::Error::other(format!("{name}: too large for one step")));
        }
        let part = part_of(body, bytes)?;
        if mode == PutMode::Overwrite {
            let put = self.store.put(&path, part.into());
            return self.wait(put).map(|done| done.e_tag);
        }
        self.put_where(&path, part, &mode)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let prefix = self.path(folder)?;
        let root = self.key("");
        self.wait_for(MAX_TIME_OF_MANY, async {
            let mut all = Vec::new();
            let mut listed = self.store.list(Some(&prefix));
            while let Some(found) = listed.try_next().await? {
                let Some(name) = found.location.as_ref().strip_prefix(&root) else { continue };
                all.push(Entry {
                    name: name.to_owned(),
                    bytes: found.size,
                    written: found.last_modified.into(),
                    version: found.e_tag,
                });
                if all.len() > MAX_LISTED {
                    let source = "more files than a lake can have".into();
                    return Err(Error::Generic { store: "S3", source });
                }
            }
            Ok(all)
        })
    }

    fn read(&self, file: &Entry, from: u64, bytes: u64) -> io::Result<bytes::Bytes> {
        self.wait(self.get(file, Some(GetRange::Bounded(from..from.saturating_add(bytes)))))
    }

    fn read_whole(&self, files: &[Entry]) -> io::Result<Vec<bytes::Bytes>> {
        let all = stream::iter(files).map(|file| self.get(file, None)).buffered(AT_A_TIME);
        self.wait(all.try_collect())
    }

    fn remove(&self, names: &[String]) -> io::Result<()> {
        let paths = names.iter().map(|name| self.path(name)).collect::<io::Result<Vec<_>>>()?;
        let paths = stream::iter(paths.into_iter().map(Ok)).boxed();
        self.wait_for(MAX_TIME_OF_MANY, async {
            let mut removed = self.store.delete_stream(paths);
            while let Some(result) = removed.next().await {
                match result {
                    Err(Error::NotFound { .. }) => (),
                    result => drop(result?),
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_store_says_is_what_people_read() {
        let long = "Generic S3 error: 403: <Error><Code>AccessDenied</Code><Message>Not yours</Message><X/></Error>\n";
        assert_eq!(in_words(long), "the store says AccessDenied: Not yours");
        assert_eq!(in_words("<Code>Busy</Code>"), "the store says Busy: it gives no reason");
        assert_eq!(in_words("it is gone\n"), "it is gone");
        let lost = "Generic S3 error: Error performing GET http://h in 1s - HTTP error: reset";
        assert_eq!(in_words(lost), "no answer to GET http://h in 1s - HTTP error: reset");
        assert_eq!(in_words("PUT http://169.254.169.254/latest/api/token: 403"), NO_KEYS);
    }

    #[test]
    fn only_this_machine_is_asked_without_tls() {
        for endpoint in [
            "http://127.0.0.1:9000",
            "http://localhost:9000/",
            "http://[::1]:1",
            "https://10.0.0.1",
        ] {
            assert_eq!(
                is_plain(endpoint, false).unwrap(),
                endpoint.starts_with("http:"),
                "{endpoint}"
            );
        }
        for other in ["http://10.0.0.1", "http://127.0.0.1.example"] {
            let why = is_plain(other, false).unwrap_err().to_string();
            assert!(why.contains("AWS_ALLOW_HTTP") && is_plain(other, true).is_ok(), "{why}");
        }
        for wrong in ["httpx:/", "127.0.0.1:9000", "", "file:///x"] {
            assert!(
                is_plain(wrong, true).unwrap_err().to_string().contains("no address"),
                "{wrong}"
            );
        }
    }
}
