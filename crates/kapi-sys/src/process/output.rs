//! One output stream of a child: lines for the callback, a tail for the record.
//!
//! Memory is bounded whatever comes: a line keeps at most its cap, the tail at most twice its cap.
//! Knows nothing of processes; it is fed bytes.

use super::CapturedOutput;

/// Cuts a stream of bytes into capped lines.
#[derive(Debug)]
struct LineCutter {
    /// The beginning of a line whose newline has not come yet.
    started: Vec<u8>,
    bytes_max: usize,
}

impl LineCutter {
    fn feed(&mut self, mut bytes: &[u8], on_line: &mut dyn FnMut(&[u8])) {
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(at);
            if self.started.is_empty() {
                on_line(head(line, self.bytes_max));
            } else {
                self.keep(line);
                on_line(&self.started);
                self.started.clear();
            }
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.keep(bytes);
    }

    fn finish(&mut self, on_line: &mut dyn FnMut(&[u8])) {
        if !self.started.is_empty() {
            on_line(&self.started);
            self.started.clear();
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let capacity = self.bytes_max.saturating_sub(self.started.len());
        self.started.extend_from_slice(head(bytes, capacity));
    }
}

/// Keeps the end of a stream of bytes.
#[derive(Debug)]
struct OutputTail {
    bytes: Vec<u8>,
    bytes_max: usize,
    bytes_total: u64,
}

impl OutputTail {
    fn feed(&mut self, bytes: &[u8]) {
        self.bytes_total = self.bytes_total.saturating_add(bytes.len() as u64);
        self.bytes.extend_from_slice(last(bytes, self.bytes_max));
        // Cutting at twice the cap moves each byte at most once.
        if self.bytes.len() > self.bytes_max.saturating_mul(2) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let surplus = self.bytes.len().saturating_sub(self.bytes_max);
        self.bytes.drain(..surplus);
    }

    fn into_captured(mut self) -> CapturedOutput {
        self.cut();
        CapturedOutput {
            tail: self.bytes,
            bytes_total: self.bytes_total,
        }
    }
}

/// What is made of one output stream.
#[derive(Debug)]
pub(super) struct Output {
    lines: LineCutter,
    tail: OutputTail,
}

impl Output {
    pub(super) fn new(tail_bytes_max: usize, line_bytes_max: usize) -> Self {
        Self {
            lines: LineCutter {
                started: Vec::new(),
                bytes_max: line_bytes_max,
            },
            tail: OutputTail {
                bytes: Vec::new(),
                bytes_max: tail_bytes_max,
                bytes_total: 0,
            },
        }
    }

    /// Takes the next bytes and hands on every line they complete.
    pub(super) fn feed(&mut self, bytes: &[u8], on_line: &mut dyn FnMut(&[u8])) {
        self.tail.feed(bytes);
        self.lines.feed(bytes, on_line);
    }

    /// Takes the end of the stream: a last line without a newline is a line.
    pub(super) fn finish(&mut self, on_line: &mut dyn FnMut(&[u8])) {
        self.lines.finish(on_line);
    }

    pub(super) fn into_captured(self) -> CapturedOutput {
        self.tail.into_captured()
    }
}

fn head(bytes: &[u8], bytes_max: usize) -> &[u8] {
    bytes.get(..bytes_max).unwrap_or(bytes)
}

fn last(bytes: &[u8], bytes_max: usize) -> &[u8] {
    let surplus = bytes.len().saturating_sub(bytes_max);
    bytes.get(surplus..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Output;
    use crate::process::CapturedOutput;

    fn check(chunks: &[&str], lines: &[&str], tail: &str) {
        let mut output = Output::new(6, 4);
        let mut seen = Vec::new();
        let mut on_line = |line: &[u8]| seen.push(String::from_utf8(line.to_vec()).unwrap());
        for chunk in chunks {
            output.feed(chunk.as_bytes(), &mut on_line);
        }
        output.finish(&mut on_line);
        assert_eq!(seen, lines);
        let bytes_total = chunks.iter().map(|chunk| chunk.len() as u64).sum();
        let captured = CapturedOutput {
            tail: tail.as_bytes().to_vec(),
            bytes_total,
        };
        assert_eq!(output.into_captured(), captured);
    }

    #[test]
    fn lines_do_not_depend_on_how_the_bytes_arrive() {
        let lines = ["ab", "", "cdef", "g"];
        check(&["ab\n\ncdefXX\ng"], &lines, "efXX\ng");
        check(
            &["a", "b", "\n", "\nc", "defX", "X\n", "g"],
            &lines,
            "efXX\ng",
        );
        check(&["ab\n\ncd", "efXX", "\ng"], &lines, "efXX\ng");
    }

    #[test]
    fn an_end_without_newline_is_a_line_and_an_end_with_one_is_not() {
        check(&["ab"], &["ab"], "ab");
        check(&["ab\n"], &["ab"], "ab\n");
        check(&[], &[], "");
    }

    #[test]
    fn a_line_far_over_the_cap_keeps_only_its_beginning() {
        check(&["0123456789"; 100], &["0123"], "456789");
    }
}
