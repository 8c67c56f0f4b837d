//! Cutting a command into simple commands and their words, as a shell does.
//!
//! Quotes, comments, here-documents and redirections are known; expansions are not, and stay as
//! they are written. Knows nothing of programs.

use std::collections::VecDeque;
use std::iter::Peekable;
use std::str::Chars;

/// One program with its words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Simple {
    /// Without quotes and redirections.
    pub(super) words: Vec<String>,
    /// Whether its output goes to a file that is kept.
    pub(super) has_output: bool,
}

/// Cuts a command at `;`, `&`, `|`, line ends and parentheses.
pub(super) fn split(command: &str) -> Vec<Simple> {
    let mut cutter = Cutter {
        chars: command.chars().peekable(),
        word: None,
        simple: Simple::default(),
        all: Vec::new(),
        redirection: Redirection::None,
        here_ends: VecDeque::new(),
    };
    cutter.run();
    cutter.all
}

/// What the next word is to a redirection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Redirection {
    None,
    /// A file that is read, or a number.
    Source,
    /// A file that is written.
    Target,
    /// The line that ends a here-document.
    HereEnd,
}

struct Cutter<'a> {
    chars: Peekable<Chars<'a>>,
    /// The word under way; `Some("")` after an empty pair of quotes.
    word: Option<String>,
    simple: Simple,
    all: Vec<Simple>,
    redirection: Redirection,
    here_ends: VecDeque<String>,
}

impl Cutter<'_> {
    fn run(&mut self) {
        while let Some(c) = self.chars.next() {
            match c {
                '\'' => self.single_quoted(),
                '"' => self.double_quoted(),
                '\\' => self.escaped(),
                '#' if self.word.is_none() => self.skip_line(),
                '\n' => {
                    self.end_simple();
                    self.skip_here_documents();
                }
                ' ' | '\t' | '\r' => self.end_word(),
                '$' if self.chars.peek() == Some(&'(') => self.end_word(),
                ';' | '&' | '|' | '(' | ')' | '`' => self.end_simple(),
                '<' | '>' => self.redirect(c),
                _ => self.push(c),
            }
        }
        self.end_simple();
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn single_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.chars.next().filter(|c| *c != '\'') {
            self.push(c);
        }
    }

    fn double_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.chars.next().filter(|c| *c != '"') {
            let is_escape = c == '\\' && matches!(self.chars.peek(), Some('"' | '\\' | '$' | '`'));
            let literal = if is_escape {
                self.chars.next()
            } else {
                Some(c)
            };
            self.word.get_or_insert_default().extend(literal);
        }
    }

    fn escaped(&mut self) {
        match self.chars.next() {
            Some('\n') | None => {}
            Some(c) => self.push(c),
        }
    }

    fn skip_line(&mut self) {
        while self.chars.next_if(|c| *c != '\n').is_some() {}
    }

    /// Passes over what a here-document holds, each to the line that ends it.
    fn skip_here_documents(&mut self) {
        while let Some(end) = self.here_ends.pop_front() {
            let is_text = |line: &String| line.trim_start_matches('\t') != end;
            while self.next_line().as_ref().is_some_and(is_text) {}
        }
    }

    fn next_line(&mut self) -> Option<String> {
        self.chars.peek()?;
        let chars = self.chars.by_ref();
        Some(chars.take_while(|c| *c != '\n').collect())
    }

    fn redirect(&mut self, sign: char) {
        // A number right before the sign is a descriptor, no word.
        let is_descriptor = |word: &String| word.bytes().all(|byte| byte.is_ascii_digit());
        if self.word.as_ref().is_some_and(is_descriptor) {
            self.word = None;
        }
        self.end_word();
        let mut signs = String::from(sign);
        while let Some(more) = self.chars.next_if(|c| "<>&|-".contains(*c)) {
            signs.push(more);
        }
        self.redirection = match signs.as_str() {
            "<<" | "<<-" => Redirection::HereEnd,
            ">" | ">>" | ">|" => Redirection::Target,
            _ => Redirection::Source,
        };
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else {
            return;
        };
        match self.redirection {
            Redirection::None => self.simple.words.push(word),
            Redirection::Source => {}
            Redirection::Target => self.simple.has_output |= !word.starts_with("/dev/"),
            Redirection::HereEnd => self.here_ends.push_back(word),
        }
        self.redirection = Redirection::None;
    }

    fn end_simple(&mut self) {
        self.end_word();
        self.redirection = Redirection::None;
        let simple = std::mem::take(&mut self.simple);
        if !simple.words.is_empty() {
            self.all.push(simple);
        }
    }
}
