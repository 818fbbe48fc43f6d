//! The connection to Trino's server: checks the certificate with https, and explains errors.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::CertificateError;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::catalog::Catalog;

/// Timeout for connecting, including TLS.
const MAX_CONNECT_TIME: Duration = Duration::from_secs(10);
/// Timeout for a page: while a query runs, a page without rows arrives every second.
const MAX_PAGE_TIME: Duration = Duration::from_secs(60);
/// Max bytes of a file of certificates; a system's own has a quarter of that.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The HTTP client for a catalog's server only.
///
/// # Errors
/// When there are no certificates to check it.
pub(super) fn agent(catalog: &Catalog) -> Result<Agent, String> {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        // A proxy from the environment leads to the internet.
        .proxy(None)
        .timeout_connect(Some(MAX_CONNECT_TIME))
        .timeout_resolve(Some(MAX_CONNECT_TIME))
        .timeout_global(Some(MAX_PAGE_TIME))
        .user_agent(concat!("hyperscope/", env!("CARGO_PKG_VERSION")));
    if catalog.server.scheme() != "https" {
        return Ok(config.build().new_agent());
    }
    let trusted = match &catalog.ca {
        Some(path) => certificates(path)?,
        None => system_certificates()?,
    };
    let trusted =
        trusted.iter().map(|certificate| Certificate::from_der(certificate.as_ref()).to_owned());
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::from(trusted))
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build();
    Ok(config.https_only(true).tls_config(tls).build().new_agent())
}

/// The certificates of the user's file, which are trusted exclusively.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = path.display();
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut text));
    read.map_err(|error| format!("cannot read {shown}: {error}"))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.ok().filter(|found| !found.is_empty());
    found.ok_or_else(|| format!("{shown} has no certificates in PEM"))
}

fn system_certificates() -> Result<Vec<CertificateDer<'static>>, String> {
    let found = rustls_native_certs::load_native_certs().certs;
    if found.is_empty() {
        return Err("this system has no certificates to check a server by: name those of its CA, by ?ca=FILE".to_owned());
    }
    Ok(found)
}

/// Why a request failed, as text.
pub(super) fn in_words(error: &ureq::Error, catalog: &Catalog) -> String {
    match tls_fault(error) {
        Some(rustls::Error::InvalidCertificate(fault)) => certificate_fault(fault, catalog),
        Some(fault) => format!("TLS fails: {fault}; is https spoken at this port?"),
        None => match error {
            ureq::Error::Timeout(what) => format!("it took too long ({what})"),
            other => other.to_string(),
        },
    }
}

fn tls_fault(error: &ureq::Error) -> Option<&rustls::Error> {
    match error {
        ureq::Error::Rustls(fault) => Some(fault),
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

fn certificate_fault(fault: &CertificateError, catalog: &Catalog) -> String {
    let host = catalog.server.host_str().unwrap_or_default();
    match fault {
        // BadSignature: a CA has the same name but another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => match &catalog.ca {
            Some(path) => format!("its certificate is not by a CA of {}", path.display()),
            None => {
                "its certificate is by no CA that this system trusts; name its CA's by ?ca=FILE"
                    .to_owned()
            }
        },
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is of a time to come; is this machine's clock right?".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("its certificate is not one of {host}")
        }
        other => format!("its certificate is refused: {other}"),
    }
}
