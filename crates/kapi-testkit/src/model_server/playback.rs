//! Decides what a request is answered with: the scenario, and how often each fault
//! and verdict was used.
//! It does not know HTTP or any API.

use kapi_check::rules::proof::judge_prompt::{TOKEN_MARK, TOKEN_OPENING};
use serde_json::Value;

use crate::model_server::fault::{FaultKind, FaultTarget, Times};
use crate::model_server::reply::{CallInput, ModelReply, ReplyToolCall};
use crate::model_server::request::{ModelRequest, OfferedTool, RequestMessage, assistant_turns};
use crate::model_server::scenario::{AssistantTurn, JudgeRule, ModelScenario};
use crate::model_server::{schema, tool_call};

/// The tools through which verdicts are handed in: claude's own, and that of a question by API.
const VERDICT_TOOLS: [&str; 2] = ["StructuredOutput", "verdict"];

/// A scenario being played.
#[derive(Debug)]
pub(crate) struct Playback {
    scenario: ModelScenario,
    /// How often each fault fired, by its index.
    fired: Vec<u32>,
    /// How many verdicts each judge rule gave, by its index.
    judged: Vec<usize>,
}

/// What to do with a request.
#[derive(Debug)]
pub(crate) struct PlaybackDecision {
    pub(crate) part: ScenarioPart,
    pub(crate) fault: Option<FaultKind>,
    pub(crate) reply: ModelReply,
}

/// The part of the scenario that a request falls under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScenarioPart {
    /// The step of this index, of the scenario or of a route.
    Step(usize),
    /// The judge rule of this index.
    Judge(usize),
    Side,
}

/// The steps that a request plays, and how far it is.
struct PlaybackPosition<'scenario> {
    steps: &'scenario [AssistantTurn],
    after: &'scenario str,
    index: usize,
}

impl Playback {
    /// Returns the playback at its beginning.
    pub(crate) fn new(scenario: ModelScenario) -> Self {
        let fired = vec![0; scenario.faults.len()];
        let judged = vec![0; scenario.judges.len()];
        Self {
            scenario,
            fired,
            judged,
        }
    }

    /// Says whether a client that presents this key is let in.
    pub(crate) fn admits(&self, key: Option<&str>) -> bool {
        match self.scenario.require_key.as_deref() {
            Some(required) => key == Some(required),
            None => true,
        }
    }

    /// Decides on a request; `serial` makes the ids of its calls unique.
    pub(crate) fn decide(&mut self, request: &ModelRequest, serial: usize) -> PlaybackDecision {
        let position = self.position(request);
        let part = self.part(request, position.index);
        let mut reply = match part {
            ScenarioPart::Step(_) => self.play(request, &position, serial),
            ScenarioPart::Judge(rule) => self.judge(request, rule, serial),
            ScenarioPart::Side => self.side(request),
        };
        let fault = self.take_fault(request, part);
        match &fault {
            Some(FaultKind::Empty) => reply = ModelReply::text(String::new(), reply.usage),
            Some(FaultKind::Huge { bytes }) => {
                reply = ModelReply::text("x".repeat(*bytes), reply.usage);
            }
            Some(_) | None => {}
        }
        let answered = fault.as_ref().is_none_or(FaultKind::is_answered);
        if let ScenarioPart::Judge(rule) = part
            && answered
            && !is_verdict_given(request)
            && let Some(count) = self.judged.get_mut(rule)
        {
            *count += 1;
        }
        PlaybackDecision { part, fault, reply }
    }

    fn position(&self, request: &ModelRequest) -> PlaybackPosition<'_> {
        let (last_user, since) = request.last_user();
        let route = self
            .scenario
            .routes
            .iter()
            .find(|route| last_user.contains(&route.matching));
        match route {
            Some(route) => PlaybackPosition {
                steps: &route.steps,
                after: &route.after,
                index: assistant_turns(since),
            },
            None => PlaybackPosition {
                steps: &self.scenario.steps,
                after: &self.scenario.after,
                index: assistant_turns(&request.history),
            },
        }
    }

    fn part(&self, request: &ModelRequest, step_index: usize) -> ScenarioPart {
        let prompt = request.prompt_text();
        let rule = self
            .scenario
            .judges
            .iter()
            .position(|rule| prompt.contains(&rule.marker) && fits_verdict(request, rule));
        match rule {
            Some(rule) => ScenarioPart::Judge(rule),
            None if request.tools.is_empty() => ScenarioPart::Side,
            None => ScenarioPart::Step(step_index),
        }
    }

    fn play(
        &self,
        request: &ModelRequest,
        position: &PlaybackPosition<'_>,
        serial: usize,
    ) -> ModelReply {
        let Some(step) = position.steps.get(position.index) else {
            return ModelReply::text(position.after.to_owned(), self.scenario.usage);
        };
        let directory = request.working_directory();
        let mut reply =
            ModelReply::text(step.say.clone(), step.usage.unwrap_or(self.scenario.usage));
        for (number, tool_use) in step.tools.iter().enumerate() {
            let planned = tool_call::plan(&request.tools, tool_use, directory.as_deref());
            if let Some(planned) = planned {
                reply.calls.push(ReplyToolCall {
                    id: format!("{serial}_{}_{number}", position.index),
                    name: planned.name,
                    namespace: planned.namespace,
                    input: planned.input,
                });
            } else {
                // Said aloud, so that the test that waits for the tool shows the reason.
                reply.text = format!("The client offers no tool for this: {tool_use:?}");
            }
        }
        reply
    }

    fn judge(&self, request: &ModelRequest, rule: usize, serial: usize) -> ModelReply {
        if is_verdict_given(request) {
            return ModelReply::text("The verdict is given.".to_owned(), self.scenario.usage);
        }
        let verdict = with_token(self.verdict(rule), &request.prompt_text());
        let tool = verdict_tool(request);
        if let (Some(tool), Value::Object(_)) = (tool, &verdict) {
            let planned = tool_call::called(tool, CallInput::Arguments(verdict));
            return ModelReply {
                text: String::new(),
                calls: vec![ReplyToolCall {
                    id: format!("{serial}_judge"),
                    name: planned.name,
                    namespace: planned.namespace,
                    input: planned.input,
                }],
                usage: self.scenario.usage,
            };
        }
        let text = match verdict {
            Value::String(text) => text,
            verdict => verdict.to_string(),
        };
        ModelReply::text(text, self.scenario.usage)
    }

    fn verdict(&self, rule: usize) -> Value {
        let given = self.judged.get(rule).copied().unwrap_or_default();
        self.scenario
            .judges
            .get(rule)
            .and_then(|rule| rule.verdicts.get(given).or_else(|| rule.verdicts.last()))
            .cloned()
            .unwrap_or_default()
    }

    fn side(&self, request: &ModelRequest) -> ModelReply {
        let text = match &request.schema {
            Some(schema) => schema::smallest(schema, "side").to_string(),
            None => "ok".to_owned(),
        };
        ModelReply::text(text, self.scenario.usage)
    }

    /// Finds the fault that hits a request, and counts it.
    fn take_fault(&mut self, request: &ModelRequest, part: ScenarioPart) -> Option<FaultKind> {
        let prompt = request.prompt_text();
        for (fault, fired) in self.scenario.faults.iter().zip(&mut self.fired) {
            let aimed = match fault.at {
                FaultTarget::Step(index) => part == ScenarioPart::Step(index),
                FaultTarget::Judge => matches!(part, ScenarioPart::Judge(_)),
                FaultTarget::Any => true,
            };
            let matching = fault
                .matching
                .as_deref()
                .is_none_or(|text| prompt.contains(text));
            let left = match fault.times {
                Times::First(times) => *fired < times,
                Times::Always => true,
            };
            if aimed && matching && left {
                *fired = fired.saturating_add(1);
                return Some(fault.kind.clone());
            }
        }
        None
    }
}

/// Puts the token of the question in where a verdict asks for it.
///
/// A question that names no token leaves the mark as it is, and so the verdict is wrong.
fn with_token(verdict: Value, question: &str) -> Value {
    let named = question
        .split_once(TOKEN_OPENING)
        .and_then(|(_, rest)| rest.split_once('`'));
    let Some((token, _)) = named else {
        return verdict;
    };
    match verdict {
        Value::String(text) => Value::String(text.replace(TOKEN_MARK, token)),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (name, with_token(value, question)))
            .collect(),
        other => other,
    }
}

/// Says whether a judge has handed in its verdict and only reports back.
fn is_verdict_given(request: &ModelRequest) -> bool {
    matches!(request.history.last(), Some(RequestMessage::ToolResult(_)))
        && verdict_tool(request).is_some()
}

fn verdict_tool(request: &ModelRequest) -> Option<&OfferedTool> {
    VERDICT_TOOLS
        .iter()
        .find_map(|name| tool_call::find_prefixed(&request.tools, name))
}

/// Says whether a verdict can answer the request.
///
/// A side request may quote the judging prompt and demand a format of its own: it
/// must not use up a verdict.
fn fits_verdict(request: &ModelRequest, rule: &JudgeRule) -> bool {
    let Some(schema) = &request.schema else {
        return true;
    };
    let required = schema::required_keys(schema);
    rule.verdicts.iter().any(|verdict| match verdict {
        Value::Object(verdict) => required.iter().all(|key| verdict.contains_key(*key)),
        // Anything else is meant to be wrong.
        _ => true,
    })
}
