//! A caller of the cluster: asks and waits for the answer, on whichever server can be reached.
//!
//! Owns the one connection there is and makes it anew when it breaks. Whatever it is asked must
//! bear being asked twice; how long it goes on trying is bounded. Starts no thread.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore, crypto};

use crate::address::{Address, Authentication};
use crate::credentials::SignedCredentials;
use crate::error::{FleetError, LinkError};
use crate::link::{ClientIdentity, LinkFailure, ServerLink};
use crate::wire::{self, DeliveredMessage, Publication};

/// How long one try waits for an answer before another server is asked.
const TRY_MAX: Duration = Duration::from_secs(2);
/// The pauses between two tries: the first and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(400);
/// Requests that are under way at once.
const WINDOW: usize = 64;
/// The status by which a server says that nobody listens.
const NOBODY: u16 = 503;

/// How the cluster is spoken with.
#[derive(Debug, Clone)]
pub struct FleetSettings {
    /// Where it is, and who asks.
    pub address: Address,
    /// Certificates of authorities to believe besides the system's.
    pub authorities: Option<PathBuf>,
    /// On how many servers everything is kept: 1, or 3 where one may be lost.
    pub replicas: u8,
    /// How long is tried before a request has failed.
    pub patience: Duration,
}

/// A caller of the cluster.
pub struct FleetClient {
    settings: FleetSettings,
    caller: ClientIdentity,
    credentials: Option<SignedCredentials>,
    state: Mutex<ClientState>,
}

struct ClientState {
    link: Option<ServerLink>,
    /// Where answers go on the present connection.
    inbox: String,
    /// How many connections were begun; says which server is next.
    n_opened: usize,
    n_asked: u64,
}

impl FleetClient {
    /// Reads what proves who asks. Connects to nobody yet.
    ///
    /// # Errors
    /// When a file that is named cannot be read.
    pub fn new(settings: FleetSettings) -> Result<Self, FleetError> {
        let credentials = match &settings.address.proof {
            Authentication::File(path) => Some(SignedCredentials::read(path)?),
            Authentication::None | Authentication::Password { .. } | Authentication::Token(_) => {
                None
            }
        };
        let caller = ClientIdentity {
            proof: settings.address.proof.clone(),
            needs_tls: settings.address.needs_tls,
            tls: tls_config(settings.authorities.as_deref())?,
        };
        // Machines that begin together do not all ask the same server.
        let n_opened = usize::from(random_bytes::<1>()?[0]);
        Ok(Self {
            settings,
            caller,
            credentials,
            state: Mutex::new(ClientState {
                link: None,
                inbox: String::new(),
                n_opened,
                n_asked: 0,
            }),
        })
    }

    /// Returns a caller with a connection of its own.
    pub(crate) fn another(&self) -> Result<Self, FleetError> {
        Self::new(self.settings.clone())
    }

    /// Returns how it was set up.
    #[must_use]
    pub const fn settings(&self) -> &FleetSettings {
        &self.settings
    }

    /// Returns when a request that begins now has failed.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.settings.patience
    }

    /// Returns the most bytes of one message.
    pub(crate) fn payload_bytes_max(&self) -> Result<usize, FleetError> {
        self.trying(self.deadline(), |state, _| {
            let link = state.link.as_ref();
            Ok(link.map_or(0, |link| link.payload_bytes_max))
        })
    }

    /// Asks, and asks again until somebody answers or the deadline is there.
    pub(crate) fn ask(
        &self,
        publication: &Publication<'_>,
        deadline: Instant,
    ) -> Result<DeliveredMessage, FleetError> {
        let one = std::slice::from_ref(publication);
        let answers = self.trying(deadline, |state, until| state.ask_window(one, until))?;
        // As many answers come as were asked for.
        Ok(answers.into_iter().next().unwrap_or_default())
    }

    /// Asks several things at once and returns the answers in the same order.
    pub(crate) fn ask_all(
        &self,
        publications: &[Publication<'_>],
        deadline: Instant,
    ) -> Result<Vec<DeliveredMessage>, FleetError> {
        let mut answers = Vec::with_capacity(publications.len());
        for window in publications.chunks(WINDOW) {
            let mut some = self.trying(deadline, |state, until| state.ask_window(window, until))?;
            answers.append(&mut some);
        }
        Ok(answers)
    }

    /// Listens to a subject on the present connection; what is said there comes by
    /// [`Self::listen`].
    pub(crate) fn subscribe(&self, subject: &str) -> Result<(), FleetError> {
        let line = format!("SUB {subject} 2\r\n");
        self.trying(self.deadline(), |state, until| {
            let link = state.link()?;
            link.write(line.as_bytes(), until)?;
            link.flush(until)
        })
    }

    /// Waits for a message of a subscription; `None` when none came, `Err` when the connection and
    /// with it the subscription is lost.
    pub(crate) fn listen(&self, deadline: Instant) -> Result<Option<DeliveredMessage>, LinkError> {
        let mut state = self.state();
        let heard = state.link().and_then(|link| link.next(deadline));
        if heard.is_err() {
            state.link = None;
        }
        heard
    }

    /// Does something on a connection, on another one if that fails, until the deadline.
    fn trying<T>(
        &self,
        deadline: Instant,
        mut work: impl FnMut(&mut ClientState, Instant) -> Result<T, LinkError>,
    ) -> Result<T, FleetError> {
        let mut state = self.state();
        let mut pause = PAUSE_MIN;
        let mut n_tries = 0;
        loop {
            n_tries += 1;
            let until = deadline.min(Instant::now() + TRY_MAX);
            let done = match self.connect(&mut state, deadline) {
                Ok(()) => work(&mut state, until),
                Err(LinkFailure::Link(error)) => Err(error),
                Err(LinkFailure::NotLetIn(said)) => {
                    let server = self.server_name(&state);
                    return Err(FleetError::NotLetIn { server, said });
                }
            };
            let error = match done {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            // What comes late on the old connection must not be taken for the next answer.
            if !matches!(error, LinkError::Nobody { .. }) {
                state.link = None;
            }
            // A certificate does not get better by waiting.
            let is_final = matches!(error, LinkError::Tls { .. })
                && n_tries >= self.settings.address.servers.len();
            if is_final || Instant::now() + pause >= deadline {
                return Err(FleetError::Unreachable {
                    servers: self.settings.address.to_string(),
                    waited_ms: millis(self.settings.patience),
                    source: error,
                });
            }
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    fn connect(&self, state: &mut ClientState, deadline: Instant) -> Result<(), LinkFailure> {
        if state.link.is_some() {
            return Ok(());
        }
        state.n_opened = state.n_opened.wrapping_add(1);
        let servers = &self.settings.address.servers;
        let number = state.n_opened % servers.len().max(1);
        let Some(server) = servers.get(number) else {
            return Err(LinkFailure::NotLetIn("no server is given".to_owned()));
        };
        let mut link = ServerLink::open(server, &self.caller, self.credentials.as_ref(), deadline)?;
        let random =
            random_hex().map_err(|_| LinkFailure::NotLetIn("no random bytes".to_owned()))?;
        let inbox = format!("_INBOX.kapi.{random}");
        link.write(format!("SUB {inbox}.* 1\r\n").as_bytes(), deadline)?;
        state.inbox = inbox;
        state.link = Some(link);
        Ok(())
    }

    fn server_name(&self, state: &ClientState) -> String {
        let servers = &self.settings.address.servers;
        let server = servers.get(state.n_opened % servers.len().max(1));
        server.map(ToString::to_string).unwrap_or_default()
    }

    fn state(&self) -> MutexGuard<'_, ClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientState {
    fn link(&mut self) -> Result<&mut ServerLink, LinkError> {
        self.link.as_mut().ok_or(LinkError::Closed {
            server: "the cluster".to_owned(),
        })
    }

    fn ask_window(
        &mut self,
        window: &[Publication<'_>],
        until: Instant,
    ) -> Result<Vec<DeliveredMessage>, LinkError> {
        let first = self.n_asked;
        self.n_asked += u64::try_from(window.len()).unwrap_or(0);
        let inbox = self.inbox.clone();
        let replies = (first..).map(|number| format!("{inbox}.{number}"));
        let bytes: Vec<u8> = window
            .iter()
            .zip(replies)
            .flat_map(|(publication, reply)| wire::encode(publication, &reply))
            .collect();
        let link = self.link()?;
        link.write(&bytes, until)?;
        let mut answers: Vec<Option<DeliveredMessage>> = vec![None; window.len()];
        let mut n_missing = window.len();
        while n_missing > 0 {
            let Some(message) = link.next(until)? else {
                let server = link.server().to_owned();
                return Err(LinkError::Silent { server });
            };
            let number = message.subject.strip_prefix(&inbox);
            let number = number.and_then(|rest| rest.strip_prefix('.')?.parse::<u64>().ok());
            let location =
                number.and_then(|number| usize::try_from(number.checked_sub(first)?).ok());
            // Anything else is the late answer to an earlier try.
            let Some(slot) = location.and_then(|location| answers.get_mut(location)) else {
                continue;
            };
            if message.status() == Some(NOBODY) {
                let server = link.server().to_owned();
                return Err(LinkError::Nobody { server });
            }
            if slot.replace(message).is_none() {
                n_missing -= 1;
            }
        }
        Ok(answers.into_iter().flatten().collect())
    }
}

/// Returns 16 random bytes as hexadecimal text.
pub(crate) fn random_hex() -> Result<String, FleetError> {
    let bytes = random_bytes::<16>()?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn random_bytes<const N: usize>() -> Result<[u8; N], FleetError> {
    let mut bytes = [0; N];
    let drawn = SystemRandom::new().fill(&mut bytes);
    drawn.map(|()| bytes).map_err(|_| FleetError::Random)
}

/// Returns a time span in milliseconds, for people.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Believes the system's authorities and those in the named file. There is no switch.
fn tls_config(more: Option<&Path>) -> Result<Arc<ClientConfig>, FleetError> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    let (_added, _unusable) = roots.add_parsable_certificates(system.certs);
    if let Some(path) = more {
        let unusable = |what| FleetError::Credentials {
            path: path.to_path_buf(),
            what,
        };
        let before = roots.len();
        let certificates =
            CertificateDer::pem_file_iter(path).map_err(|_| unusable("it has no certificates"))?;
        for certificate in certificates {
            let certificate = certificate.map_err(|_| unusable("a certificate cannot be read"))?;
            let added = roots.add(certificate);
            added.map_err(|_| unusable("a certificate does not belong to an authority"))?;
        }
        if roots.len() == before {
            return Err(unusable("it has no certificates"));
        }
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(FleetError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
