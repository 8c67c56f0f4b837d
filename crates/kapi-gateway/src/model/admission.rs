//! Whether a request may pass.
//!
//! Pure but for the question whether the budget is spent. It does not read the body, nor word the
//! answer.

use std::error::Error as StdError;

use crate::http::head::RequestHead;
use crate::model::ModelGateway;
use crate::model::dialect::{GatewayErrorKind, ProviderRequest, RequestPurpose};
use crate::model::event::GatewayRefusal;
use crate::model::route::{AuthStyle, take_keys, take_private};

/// Whether another request may follow on the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeepAlive {
    Keep,
    Close,
}

/// A request that is not sent on.
#[derive(Debug)]
pub(crate) struct RefusedRequest {
    pub(crate) why: GatewayRefusal,
    pub(crate) fault: GatewayErrorKind,
    pub(crate) message: String,
}

/// A request that may pass.
pub(crate) struct AllowedRequest {
    pub(crate) request: ProviderRequest,
    /// Without keys and private headers; its target has no key either.
    pub(crate) head: RequestHead,
    /// The query without a key.
    pub(crate) query: String,
    pub(crate) keep: KeepAlive,
}

/// Decides whether a request may pass.
pub(crate) fn allow(
    gateway: &ModelGateway<'_>,
    head: &RequestHead,
) -> Result<AllowedRequest, RefusedRequest> {
    let (path, query) = head.target.split_once('?').unwrap_or((&head.target, ""));
    let dialect = gateway.upstream.dialect;
    let known = dialect.request(&head.method, path);
    let Some(request) = known.filter(|_| dialect.allows_query(query)) else {
        let message = format!(
            "kapi: this run's model gateway does not forward {} {path}",
            head.method
        );
        return Err(refused(
            GatewayRefusal::NotAllowed,
            GatewayErrorKind::Forbidden,
            message,
        ));
    };
    let mut headers = head.headers.clone();
    let query = match gateway.upstream.auth {
        AuthStyle::AgentsOwn => query.to_owned(),
        AuthStyle::XApiKey | AuthStyle::Bearer | AuthStyle::XGoogApiKey | AuthStyle::None => {
            take_keys(&mut headers, query, &gateway.placeholder).map_err(|error| {
                let message = format!("kapi: failed to {error}");
                refused(GatewayRefusal::Key, GatewayErrorKind::Forbidden, message)
            })?
        }
    };
    take_private(&mut headers);
    if request.purpose == RequestPurpose::ModelCall {
        let is_encoded = |coding: &[u8]| !coding.eq_ignore_ascii_case(b"identity");
        if headers.all("content-encoding").any(is_encoded) {
            let message = "kapi: an encoded request cannot be read; send it unencoded";
            let message = message.to_owned();
            return Err(refused(
                GatewayRefusal::Unreadable,
                GatewayErrorKind::BadRequest,
                message,
            ));
        }
        if gateway.is_spent() {
            return Err(refused(
                GatewayRefusal::Spent,
                GatewayErrorKind::Spent,
                spent_message(),
            ));
        }
    }
    let target = match query.as_str() {
        "" => path.to_owned(),
        query => format!("{path}?{query}"),
    };
    Ok(AllowedRequest {
        request,
        head: RequestHead {
            method: head.method.clone(),
            target,
            version: head.version,
            headers,
        },
        query,
        keep: keep_of(head),
    })
}

/// The words that an agent shows once its budget is spent. None of them looks like a passing
/// trouble: some agents decide by words whether to ask again.
pub(crate) fn spent_message() -> String {
    "kapi: the budget of this run is spent; no further model call is allowed".to_owned()
}

/// Words a refusal.
pub(crate) fn refused(
    why: GatewayRefusal,
    fault: GatewayErrorKind,
    message: String,
) -> RefusedRequest {
    RefusedRequest {
        why,
        fault,
        message,
    }
}

/// Tells whether the agent wants to ask again on the connection.
pub(crate) fn keep_of(head: &RequestHead) -> KeepAlive {
    if head.keeps_alive() {
        KeepAlive::Keep
    } else {
        KeepAlive::Close
    }
}

/// Writes an error with its causes, for a person.
pub(crate) fn reason(error: &dyn StdError) -> String {
    let mut text = format!("kapi: failed to {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
