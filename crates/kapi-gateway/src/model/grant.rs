//! Whether a model call may be sent, and in which words.
//!
//! Its model must be one that this run may ask. What only the provider would do is taken out of it,
//! and its answer is limited to what is granted by whoever watches. Sends nothing.

use std::borrow::Cow;

use kapi_spend::rules::call::{CallBounds, OutputLimit};

use crate::model::ModelGateway;
use crate::model::admission::{RefusedRequest, reason, refused, spent_message};
use crate::model::call::{self, AskedBy, CallError, ModelCall};
use crate::model::dialect::{GatewayErrorKind, ModelDialect, ProviderRequest};
use crate::model::estimate::Basis;
use crate::model::event::{GatewayEvent, GatewayRefusal};
use crate::model::members::Members;
use crate::model::output_limit::{ChatLimitName, lowered};
use crate::model::provider_tools::take_out;
use crate::model::rules::ProviderTools;
use crate::model::wish::{CallAnswer, CallWish};

/// A model call that may be sent; whoever watches is told of its end when this is dropped.
pub(crate) struct GrantedCall<'a> {
    /// The model's name, safe to show.
    pub(crate) model: String,
    /// What is sent.
    pub(crate) body: Cow<'a, [u8]>,
    /// What its use is estimated by, where the answer does not tell.
    pub(crate) basis: Basis,
    _open: OpenCall<'a>,
}

/// A call that whoever watches counts as under way.
struct OpenCall<'a> {
    gateway: &'a ModelGateway<'a>,
    call: u64,
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        (self.gateway.watch.on_end)(self.call);
    }
}

/// Decides about a model call, and words it as it is sent.
pub(crate) fn grant<'a>(
    gateway: &'a ModelGateway<'a>,
    number: u64,
    request: &ProviderRequest,
    body: &'a [u8],
) -> Result<GrantedCall<'a>, RefusedRequest> {
    let dialect = gateway.upstream.dialect;
    let mut read = call::read(dialect, &request.tail, body).map_err(|error| unreadable(&error))?;
    check_model(gateway, &read)?;
    let parts = take_out_remote(gateway, &mut read)?;
    let output_max = match (gateway.watch.on_call)(&wish(gateway, number, &read)) {
        CallAnswer::Go { output_max } => output_max,
        CallAnswer::Refused { why } => return Err(too_little(format!("kapi: {why}"))),
        CallAnswer::Stopped => return Err(too_little(spent_message())),
    };
    let open = OpenCall {
        gateway,
        call: number,
    };
    let from = read.output_tokens_max;
    if let Some(to) = output_max.filter(|to| from.is_none_or(|from| *to < from)) {
        lower(gateway, &mut read, to)?;
        let call = number;
        gateway.notify(GatewayEvent::Lowered { call, from, to });
    }
    gateway.notify(GatewayEvent::Call {
        call: number,
        model: read.model.clone(),
    });
    if read.usage_asked_by == AskedBy::Gateway {
        gateway.notify(GatewayEvent::UsageAsked { call: number });
    }
    if !parts.is_empty() {
        gateway.notify(GatewayEvent::TakenOut {
            call: number,
            parts,
        });
    }
    Ok(GrantedCall {
        basis: basis(&read),
        model: read.model,
        body: read.body,
        _open: open,
    })
}

fn basis(read: &ModelCall<'_>) -> Basis {
    Basis {
        body_bytes: read.body.len(),
        output_tokens_max: read.output_tokens_max,
    }
}

fn check_model(gateway: &ModelGateway<'_>, read: &ModelCall<'_>) -> Result<(), RefusedRequest> {
    let rules = &gateway.rules;
    if rules.allows_model(&read.model) {
        return Ok(());
    }
    gateway.notify(GatewayEvent::ModelRefused {
        model: read.model.clone(),
    });
    let message = format!(
        "kapi: this run may not ask the model {:?}; it may ask {}",
        read.model,
        rules.models.join(", ")
    );
    Err(refused(
        GatewayRefusal::Model,
        GatewayErrorKind::Forbidden,
        message,
    ))
}

/// Takes out what only the provider would do, where it may not; returns what that was.
fn take_out_remote(
    gateway: &ModelGateway<'_>,
    read: &mut ModelCall<'_>,
) -> Result<Vec<String>, RefusedRequest> {
    if gateway.rules.provider_tools == ProviderTools::Allowed {
        return Ok(Vec::new());
    }
    let own = text(&read.body)
        .and_then(|text| Ok(take_out(gateway.upstream.dialect, text)?))
        .map_err(|error| unreadable(&error))?;
    if let Some(body) = own.body {
        read.body = Cow::Owned(body.into_bytes());
    }
    Ok(own.parts.into_iter().collect())
}

fn wish<'w>(gateway: &ModelGateway<'_>, call: u64, read: &'w ModelCall<'_>) -> CallWish<'w> {
    let basis = basis(read);
    let dialect = gateway.upstream.dialect;
    // Behind a subscription's own server a limit is an error.
    let host = gateway.upstream.base_url.authority();
    let takes_limit = dialect != ModelDialect::Responses || !is_of(&host, "chatgpt.com");
    let output = match read.output_tokens_max {
        _ if !takes_limit => OutputLimit::Fixed(basis.unread()),
        Some(named) => OutputLimit::Named(named),
        None => OutputLimit::Unnamed(basis.unread()),
    };
    CallWish {
        call,
        model: &read.model,
        bounds: CallBounds {
            input_least: basis.input_least(),
            input_likely: basis.input_likely(),
            input_max: (!is_partly_kept(dialect, &read.body)).then(|| basis.input_max()),
            output,
        },
    }
}

/// Tells whether the provider keeps a part of what the model reads.
fn is_partly_kept(dialect: ModelDialect, body: &[u8]) -> bool {
    let names: &[&str] = match dialect {
        ModelDialect::Responses => &["previous_response_id", "conversation", "prompt"],
        ModelDialect::Gemini => &["cachedContent", "cached_content"],
        ModelDialect::Anthropic | ModelDialect::Chat => return false,
    };
    let members = text(body)
        .ok()
        .and_then(|text| Members::parse(text).ok())
        .unwrap_or_default();
    let is_said = |name: &&str| members.get(name).is_some_and(|text| text != "null");
    names.iter().any(is_said)
}

/// Writes the most that the model may write into a request.
fn lower(
    gateway: &ModelGateway<'_>,
    read: &mut ModelCall<'_>,
    to: u64,
) -> Result<(), RefusedRequest> {
    let host = gateway.upstream.base_url.authority();
    let name = if is_of(&host, "openai.com") {
        ChatLimitName::MaxCompletionTokens
    } else {
        ChatLimitName::MaxTokens
    };
    let body = text(&read.body).map_err(|error| unreadable(&error))?;
    let body = lowered(gateway.upstream.dialect, body, to, name)
        .map_err(|error| unreadable(&CallError::Malformed(error)))?;
    read.body = Cow::Owned(body.into_bytes());
    read.output_tokens_max = Some(to);
    Ok(())
}

fn text(body: &[u8]) -> Result<&str, CallError> {
    std::str::from_utf8(body).map_err(|_| CallError::NotAnObject)
}

/// Tells whether a host is this one or one below it.
fn is_of(authority: &str, domain: &str) -> bool {
    let host = authority.split(':').next().unwrap_or_default();
    host.strip_suffix(domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn unreadable(error: &CallError) -> RefusedRequest {
    refused(
        GatewayRefusal::Unreadable,
        GatewayErrorKind::BadRequest,
        reason(error),
    )
}

fn too_little(message: String) -> RefusedRequest {
    refused(GatewayRefusal::Limit, GatewayErrorKind::Spent, message)
}
