//! Whose certificates are believed: the system's authorities and, where the person names a file,
//! one more set.
//!
//! Knows nothing of connections. Certificates are always checked; there is no switch.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::{ClientConfig, RootCertStore, crypto};

/// Why there is nobody to believe.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The named file cannot be read as certificates.
    #[error("read certificates from {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: pem::Error,
    },
    /// A certificate in the named file is none of an authority.
    #[error("trust the certificates in {}", path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: rustls::Error,
    },
    /// The file holds none.
    #[error("find a certificate in {}", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The library knows none of the protocol's versions.
    #[error("set up TLS")]
    Versions(#[source] rustls::Error),
}

/// Returns how TLS is spoken with a provider.
///
/// A system without any authority is no error here: the handshake will say so.
pub(crate) fn client_config(more: Option<&Path>) -> Result<Arc<ClientConfig>, TrustError> {
    let mut roots = RootCertStore::empty();
    // Certificates that cannot be read are those of authorities that are not trusted.
    let system = rustls_native_certs::load_native_certs();
    let (_added, _unusable) = roots.add_parsable_certificates(system.certs);
    if let Some(path) = more {
        add_file(&mut roots, path)?;
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TrustError::Versions)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), TrustError> {
    let at = || path.to_path_buf();
    let of_file = |source| TrustError::File { path: at(), source };
    let before = roots.len();
    for certificate in CertificateDer::pem_file_iter(path).map_err(of_file)? {
        let added = roots.add(certificate.map_err(of_file)?);
        added.map_err(|source| TrustError::Authority { path: at(), source })?;
    }
    if roots.len() == before {
        return Err(TrustError::Empty { path: at() });
    }
    Ok(())
}
