//! What keys mean, by what the view asks: one key is one action, or a letter of a message.
//!
//! Pure: a key and a state become an action, which somebody else carries out.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind};

use crate::live_view::facts::command_line;
use crate::live_view::state::{Prompt, ViewState};

/// Bytes of a message.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// What a key leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyAction {
    /// Nothing but another look of the screen.
    Nothing,
    /// A command line of Kapi's own is run, beside the work.
    Run(Vec<String>),
    /// A question of somebody else was answered.
    Reply(bool),
    /// What changed is shown in the person's pager.
    Diff(String),
    /// The view is closed.
    Leave,
    /// What waits for the person is put to them.
    Inbox,
    /// A command line that shows itself is run in place of the view.
    RunInstead(Vec<String>),
}

/// Returns what a key leads to, and changes what is asked.
pub(super) fn press(state: &mut ViewState, key: KeyEvent) -> KeyAction {
    if key.kind == KeyEventKind::Release {
        return KeyAction::Nothing;
    }
    state.note = None;
    match std::mem::take(&mut state.prompt) {
        Prompt::Keys => action(state, key.code),
        Prompt::Message { text } => message(state, text, key.code),
        Prompt::Leaving => match key.code {
            KeyCode::Char('q' | 'y') | KeyCode::Enter => KeyAction::Leave,
            _ => KeyAction::Nothing,
        },
        Prompt::Question { text } => match key.code {
            KeyCode::Char('y' | 'Y') => answered(state, true),
            KeyCode::Char('n' | 'N') | KeyCode::Esc => answered(state, false),
            _ => {
                state.prompt = Prompt::Question { text };
                KeyAction::Nothing
            }
        },
    }
}

/// Replies to whoever asked: somebody at work, or the view itself about a command it would run.
fn answered(state: &mut ViewState, answer: bool) -> KeyAction {
    match state.on_yes.take() {
        Some(words) if answer => KeyAction::Run(words),
        Some(_) => KeyAction::Nothing,
        None => KeyAction::Reply(answer),
    }
}

fn action(state: &mut ViewState, key: KeyCode) -> KeyAction {
    let is_overview = state.overview.is_some();
    match key {
        KeyCode::Up | KeyCode::Char('k') => state.select_previous(),
        KeyCode::Down | KeyCode::Char('j') => state.select_next(),
        KeyCode::Char('q') if is_overview => return KeyAction::Leave,
        KeyCode::Char('q') => state.prompt = Prompt::Leaving,
        KeyCode::Char('a') if is_overview => return KeyAction::Inbox,
        _ => return of_subject(state, key),
    }
    KeyAction::Nothing
}

fn of_subject(state: &mut ViewState, key: KeyCode) -> KeyAction {
    let Some(facts) = state.selected().cloned() else {
        return KeyAction::Nothing;
    };
    let verbs = &facts.verbs;
    match key {
        KeyCode::Char('s') if verbs.say.is_some() => {
            let text = String::new();
            state.prompt = Prompt::Message { text };
        }
        KeyCode::Char('p') => match (&verbs.pause, state.resume(&facts)) {
            (Some(pause), _) => return KeyAction::Run(pause.clone()),
            (None, Some(resume)) if state.is_at_work => return KeyAction::Run(resume.clone()),
            (None, Some(resume)) => return KeyAction::RunInstead(resume.clone()),
            (None, None) => {}
        },
        KeyCode::Char('a') => {
            if let Some(refused) = facts.refused.last() {
                let pattern = &refused.pattern;
                let text = format!("Allow {pattern:?} for the rest of this goal?");
                let allow = command_line(&["goal", "allow", &facts.reference, pattern]);
                ask(state, text, allow);
            }
        }
        KeyCode::Char('c') if verbs.cancel.is_some() => {
            let text = format!("Cancel {} for good? Its work so far is kept.", facts.id);
            ask(state, text, verbs.cancel.clone());
        }
        KeyCode::Char('d') => {
            let diff = verbs.diff.clone();
            return diff.map_or(KeyAction::Nothing, KeyAction::Diff);
        }
        _ => {}
    }
    KeyAction::Nothing
}

/// Asks a question of the view's own, with what a yes runs.
fn ask(state: &mut ViewState, text: String, on_yes: Option<Vec<String>>) {
    state.prompt = Prompt::Question { text };
    state.on_yes = on_yes;
}

fn message(state: &mut ViewState, mut text: String, key: KeyCode) -> KeyAction {
    match key {
        KeyCode::Esc => return KeyAction::Nothing,
        KeyCode::Enter => {
            let say = state.selected().and_then(|facts| facts.verbs.say.clone());
            let Some(mut words) = say.filter(|_| !text.trim().is_empty()) else {
                return KeyAction::Nothing;
            };
            words.push(text);
            return KeyAction::Run(words);
        }
        KeyCode::Backspace => drop(text.pop()),
        KeyCode::Char(c) if text.len() < MESSAGE_BYTES_MAX => text.push(c),
        _ => {}
    }
    state.prompt = Prompt::Message { text };
    KeyAction::Nothing
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::{KeyAction, press};
    use crate::live_view::facts::{RefusedFacts, SubjectFacts, SubjectVerbs, command_line};
    use crate::live_view::overview::Overview;
    use crate::live_view::state::{Prompt, ViewState};

    fn state(is_overview: bool) -> ViewState {
        let mut state = ViewState::default();
        state.put(vec![SubjectFacts {
            id: "007-fix".to_owned(),
            reference: "007".to_owned(),
            verbs: SubjectVerbs {
                say: command_line(&["say", "007", "--"]),
                pause: command_line(&["pause", "007"]),
                cancel: command_line(&["cancel", "007", "--yes"]),
                diff: Some("007".to_owned()),
                ..SubjectVerbs::default()
            },
            refused: vec![RefusedFacts {
                pattern: "git push".to_owned(),
                command: "git push origin".to_owned(),
            }],
            ..SubjectFacts::default()
        }]);
        state.overview = is_overview.then(Overview::default);
        state
    }

    fn typed(state: &mut ViewState, keys: &[KeyCode]) -> Option<KeyAction> {
        let press = |key: &KeyCode| press(state, KeyEvent::new(*key, KeyModifiers::NONE));
        keys.iter().map(press).last()
    }

    fn run(words: &[&str]) -> Option<KeyAction> {
        Some(KeyAction::Run(
            words.iter().map(|&word| word.to_owned()).collect(),
        ))
    }

    #[test]
    fn a_message_is_typed_letter_by_letter_and_sent_with_enter() {
        let mut state = state(false);
        let keys = [
            KeyCode::Char('s'),
            KeyCode::Char('-'),
            KeyCode::Char('p'),
            KeyCode::Char('x'),
            KeyCode::Backspace,
        ];
        assert_eq!(typed(&mut state, &keys), Some(KeyAction::Nothing));
        let text = "-p".to_owned();
        assert_eq!(state.prompt, Prompt::Message { text });
        let sent = run(&["kapi", "say", "007", "--", "-p"]);
        assert_eq!(typed(&mut state, &[KeyCode::Enter]), sent);
        assert_eq!(state.prompt, Prompt::Keys);
        let left = [KeyCode::Char('s'), KeyCode::Char('a'), KeyCode::Esc];
        assert_eq!(typed(&mut state, &left), Some(KeyAction::Nothing));
        assert_eq!(state.prompt, Prompt::Keys);
    }

    #[test]
    fn what_was_refused_is_allowed_after_a_yes() {
        let mut state = state(false);
        let allow = run(&["kapi", "goal", "allow", "007", "git push"]);
        let yes = [KeyCode::Char('a'), KeyCode::Char('y')];
        assert_eq!(typed(&mut state, &yes), allow);
        let no = [KeyCode::Char('a'), KeyCode::Char('n')];
        assert_eq!(typed(&mut state, &no), Some(KeyAction::Nothing));
        // A question of somebody at work gets its own reply.
        let text = "May it?".to_owned();
        state.prompt = Prompt::Question { text };
        let asked = typed(&mut state, &[KeyCode::Char('x'), KeyCode::Char('y')]);
        assert_eq!(asked, Some(KeyAction::Reply(true)));
    }

    #[test]
    fn nothing_is_cancelled_without_a_yes() {
        let mut state = state(false);
        let no = [KeyCode::Char('c'), KeyCode::Esc];
        assert_eq!(typed(&mut state, &no), Some(KeyAction::Nothing));
        let yes = [KeyCode::Char('c'), KeyCode::Char('y')];
        assert_eq!(
            typed(&mut state, &yes),
            run(&["kapi", "cancel", "007", "--yes"])
        );
    }

    #[test]
    fn what_something_cannot_do_no_key_does() {
        let mut state = state(true);
        state.subjects[0].verbs = SubjectVerbs::default();
        for key in ['s', 'p', 'c', 'd'] {
            let pressed = typed(&mut state, &[KeyCode::Char(key)]);
            assert_eq!(pressed, Some(KeyAction::Nothing), "{key}");
            assert_eq!(state.prompt, Prompt::Keys, "{key}");
        }
    }

    #[test]
    fn leaving_is_asked_only_where_something_would_go_on_as_lines() {
        assert_eq!(
            typed(&mut state(true), &[KeyCode::Char('q')]),
            Some(KeyAction::Leave)
        );
        let mut work = state(false);
        assert_eq!(
            typed(&mut work, &[KeyCode::Char('q')]),
            Some(KeyAction::Nothing)
        );
        assert_eq!(work.prompt, Prompt::Leaving);
        assert_eq!(typed(&mut work, &[KeyCode::Esc]), Some(KeyAction::Nothing));
        assert_eq!(work.prompt, Prompt::Keys);
        let twice = [KeyCode::Char('q'), KeyCode::Char('q')];
        assert_eq!(typed(&mut work, &twice), Some(KeyAction::Leave));
    }

    #[test]
    fn the_rest_is_one_key_each() {
        let mut state = state(false);
        let paused = run(&["kapi", "pause", "007"]);
        assert_eq!(typed(&mut state, &[KeyCode::Char('p')]), paused);
        let diff = Some(KeyAction::Diff("007".to_owned()));
        assert_eq!(typed(&mut state, &[KeyCode::Char('d')]), diff);
        let verbs = &mut state.subjects[0].verbs;
        verbs.pause = None;
        verbs.resume = command_line(&["resume", "007"]);
        verbs.resume_beside = command_line(&["resume", "007", "--no-run"]);
        assert_eq!(
            typed(&mut state, &[KeyCode::Char('p')]),
            Some(KeyAction::Nothing)
        );
        state.overview = Some(Overview::default());
        let resumed = ["kapi", "resume", "007"].map(str::to_owned).to_vec();
        let resumed = Some(KeyAction::RunInstead(resumed));
        assert_eq!(typed(&mut state, &[KeyCode::Char('p')]), resumed);
        state.is_at_work = true;
        let beside = run(&["kapi", "resume", "007", "--no-run"]);
        assert_eq!(typed(&mut state, &[KeyCode::Char('p')]), beside);
        assert_eq!(
            typed(&mut state, &[KeyCode::Char('a')]),
            Some(KeyAction::Inbox)
        );
    }
}
