//! Turns rules about system calls into one program for the kernel's filter machine.
//!
//! The calls are found by bisection, so a call costs a handful of instructions however long the table
//! is. All jumps are forward and relative, so pieces are joined by laying them one after the other.

use libc::sock_filter;

/// What the filter does with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallAction {
    /// It is made.
    Allow,
    /// It fails with `EPERM`.
    Refuse,
    /// It fails with `ENOSYS`, so that the caller takes an older way.
    Absent,
    /// It is made if all clauses of one of these sets hold, and fails with `EPERM` otherwise.
    AllowIf(&'static [&'static [Clause]]),
    /// It fails with `EPERM` if all clauses of one of these sets hold, and is made otherwise.
    RefuseIf(&'static [&'static [Clause]]),
}

/// A condition on the low half of an argument, which is all the kernel uses of those asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clause {
    /// The masked argument is one of the values.
    OneOf {
        /// Which argument, from 0.
        argument: u32,
        /// The bits looked at.
        mask: u32,
        /// The values.
        values: &'static [u32],
    },
    /// The argument has one of the bits.
    AnyBit {
        /// Which argument, from 0.
        argument: u32,
        /// The bits.
        bits: u32,
    },
}

/// The instruction set whose calls are judged.
#[cfg(target_arch = "x86_64")]
pub(super) const ARCHITECTURE: u32 = 0xC000_003E;
/// The instruction set whose calls are judged.
#[cfg(target_arch = "aarch64")]
pub(super) const ARCHITECTURE: u32 = 0xC000_00B7;

/// The first number of the second call table of x86-64, with pointers of 32 bits.
const OTHER_TABLE_FROM: u32 = 0x4000_0000;
/// The number of no call at all.
const NO_CALL: u32 = u32::MAX;
/// Where `struct seccomp_data` holds the number, the instruction set and the first argument.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;
const ARGUMENT_BYTES: u32 = 8;

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const AND: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
const JUMP: u32 = libc::BPF_JMP | libc::BPF_JA;
const JUMP_IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const JUMP_IF_AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
const JUMP_IF_ANY_BIT: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// Instructions that a program is given room for; only a longer one makes the room grow.
const LENGTH_USUAL: usize = 512;

/// Assembles the filter from rules by call number; calls without a rule are allowed. If a number has
/// two rules, the last one holds.
pub(super) fn assemble(rules: Vec<(u32, CallAction)>) -> Vec<sock_filter> {
    // In one piece of memory: each new page costs a start more than all that is written to it.
    let mut program = Vec::with_capacity(LENGTH_USUAL);
    program.extend([
        load(ARCHITECTURE_AT),
        branch(JUMP_IF_EQUAL, ARCHITECTURE, 1, 0),
        give(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER_AT),
        branch(JUMP_IF_AT_LEAST, OTHER_TABLE_FROM, 0, 2),
        branch(JUMP_IF_EQUAL, NO_CALL, 1, 0),
        give(libc::SECCOMP_RET_KILL_PROCESS),
    ]);
    bisect(&mut program, &ranges(rules));
    program
}

/// Returns where each stretch of calls with the same rule begins; the first begins at 0.
fn ranges(mut rules: Vec<(u32, CallAction)>) -> Vec<(u32, CallAction)> {
    // Stable, so that the last of those with one number stays the last.
    rules.sort_by_key(|(number, _)| *number);
    let mut ranges = Vec::with_capacity(rules.len() * 2 + 2);
    ranges.push((0, CallAction::Allow));
    let mut next = 0;
    for (number, rule) in rules {
        if number > next {
            begin(&mut ranges, next, CallAction::Allow);
        }
        begin(&mut ranges, number, rule);
        next = number.saturating_add(1);
    }
    begin(&mut ranges, next, CallAction::Allow);
    ranges
}

fn begin(ranges: &mut Vec<(u32, CallAction)>, number: u32, rule: CallAction) {
    match ranges.last_mut() {
        Some((_, last)) if *last == rule => {}
        Some((from, last)) if *from == number => *last = rule,
        _ => ranges.push((number, rule)),
    }
}

/// Finds the stretch that holds the loaded number.
fn bisect(program: &mut Vec<sock_filter>, ranges: &[(u32, CallAction)]) {
    let (lower, upper) = ranges.split_at(ranges.len() / 2);
    let Some((from, first)) = upper.first() else {
        return;
    };
    if lower.is_empty() {
        return leaf(program, *first);
    }
    let over = search_length(lower);
    match u8::try_from(over) {
        Ok(over) => program.push(branch(JUMP_IF_AT_LEAST, *from, over, 0)),
        // Only the unconditional jump reaches farther than one byte can say.
        Err(_) => program.extend([
            branch(JUMP_IF_AT_LEAST, *from, 0, 1),
            instruction(JUMP, u32::try_from(over).unwrap_or(u32::MAX), 0, 0),
        ]),
    }
    bisect(program, lower);
    bisect(program, upper);
}

/// Returns how many instructions [`bisect`] takes.
fn search_length(ranges: &[(u32, CallAction)]) -> usize {
    let (lower, upper) = ranges.split_at(ranges.len() / 2);
    match upper.first() {
        None => 0,
        Some((_, first)) if lower.is_empty() => leaf_length(*first),
        Some(_) => {
            let over = search_length(lower);
            let jump = if u8::try_from(over).is_ok() { 1 } else { 2 };
            jump + over + search_length(upper)
        }
    }
}

fn leaf(program: &mut Vec<sock_filter>, rule: CallAction) {
    let allow = libc::SECCOMP_RET_ALLOW;
    let refuse = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
    match rule {
        CallAction::Allow => program.push(give(allow)),
        CallAction::Refuse => program.push(give(refuse)),
        CallAction::Absent => {
            program.push(give(libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned()));
        }
        CallAction::AllowIf(sets) => any_of(program, sets, allow, refuse),
        CallAction::RefuseIf(sets) => any_of(program, sets, refuse, allow),
    }
}

fn leaf_length(rule: CallAction) -> usize {
    match rule {
        CallAction::Allow | CallAction::Refuse | CallAction::Absent => 1,
        CallAction::AllowIf(sets) | CallAction::RefuseIf(sets) => {
            1 + sets.iter().map(|set| set_length(set)).sum::<usize>()
        }
    }
}

/// Ends the program with one value if all clauses of one of the sets hold, and with another if not.
fn any_of(program: &mut Vec<sock_filter>, sets: &[&[Clause]], if_one: u32, if_none: u32) {
    for set in sets {
        all_of(program, set, if_one);
    }
    program.push(give(if_none));
}

/// Ends the program with a value if all clauses hold, and goes on behind itself if not.
fn all_of(program: &mut Vec<sock_filter>, set: &[Clause], value: u32) {
    let mut rest = set;
    while let [held, others @ ..] = rest {
        let over = u8::try_from(set_length(others)).unwrap_or(u8::MAX);
        assert!(
            over < u8::MAX,
            "a set of clauses is a few instructions long"
        );
        clause(program, *held, over);
        rest = others;
    }
    program.push(give(value));
}

/// Returns how many instructions [`all_of`] takes.
fn set_length(set: &[Clause]) -> usize {
    1 + set.iter().map(|held| clause_length(*held)).sum::<usize>()
}

/// Goes on behind itself if a clause holds, and `over` instructions farther if not.
fn clause(program: &mut Vec<sock_filter>, clause: Clause, over: u8) {
    match clause {
        Clause::AnyBit { argument, bits } => program.extend([
            load(ARGUMENTS_AT + ARGUMENT_BYTES * argument),
            branch(JUMP_IF_ANY_BIT, bits, 0, over),
        ]),
        Clause::OneOf {
            argument,
            mask,
            values,
        } => {
            program.push(load(ARGUMENTS_AT + ARGUMENT_BYTES * argument));
            if mask != u32::MAX {
                program.push(instruction(AND, mask, 0, 0));
            }
            let n_values = u8::try_from(values.len()).unwrap_or(u8::MAX);
            for (value, n_left) in values.iter().zip((0..n_values).rev()) {
                let otherwise = if n_left == 0 { over } else { 0 };
                program.push(branch(JUMP_IF_EQUAL, *value, n_left, otherwise));
            }
        }
    }
}

/// Returns how many instructions [`clause`] takes.
fn clause_length(clause: Clause) -> usize {
    match clause {
        Clause::AnyBit { .. } => 2,
        Clause::OneOf { mask, values, .. } => 1 + usize::from(mask != u32::MAX) + values.len(),
    }
}

fn load(at: u32) -> sock_filter {
    instruction(LOAD, at, 0, 0)
}

fn give(value: u32) -> sock_filter {
    instruction(RETURN, value, 0, 0)
}

fn branch(code: u32, operand: u32, if_true: u8, if_false: u8) -> sock_filter {
    instruction(code, operand, if_true, if_false)
}

fn instruction(code: u32, operand: u32, if_true: u8, if_false: u8) -> sock_filter {
    let code = u16::try_from(code).unwrap_or(u16::MAX);
    assert!(code != u16::MAX, "operation codes have two bytes");
    sock_filter {
        code,
        jt: if_true,
        jf: if_false,
        k: operand,
    }
}

/// A machine for such programs, to see what they decide without asking the kernel.
#[cfg(test)]
pub(super) mod evaluate {
    use libc::sock_filter;

    /// A system call.
    #[derive(Debug, Clone)]
    pub(crate) struct Call {
        /// Its number.
        pub number: u32,
        /// The instruction set it was made in.
        pub architecture: u32,
        /// Its arguments.
        pub arguments: [u64; 6],
    }

    /// The result of a call.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum CallResult {
        /// It is made.
        Allowed,
        /// It fails with this number.
        Refused(i32),
        /// The process is killed.
        Killed,
    }

    /// Runs a program on a call.
    pub(crate) fn run(program: &[sock_filter], call: &Call) -> CallResult {
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let step = program[at];
            at += 1;
            let chosen = |holds: bool| usize::from(if holds { step.jt } else { step.jf });
            match u32::from(step.code) {
                super::LOAD => accumulator = word(call, step.k),
                super::AND => accumulator &= step.k,
                super::JUMP => at += step.k as usize,
                super::JUMP_IF_EQUAL => at += chosen(accumulator == step.k),
                super::JUMP_IF_AT_LEAST => at += chosen(accumulator >= step.k),
                super::JUMP_IF_ANY_BIT => at += chosen(accumulator & step.k != 0),
                super::RETURN => return disposition(step.k),
                code => panic!("{code:#x}"),
            }
        }
    }

    fn word(call: &Call, at: u32) -> u32 {
        match at {
            super::NUMBER_AT => call.number,
            super::ARCHITECTURE_AT => call.architecture,
            _ => {
                let index = (at - super::ARGUMENTS_AT) / super::ARGUMENT_BYTES;
                let argument = call.arguments[index as usize];
                u32::try_from(argument & u64::from(u32::MAX)).unwrap()
            }
        }
    }

    fn disposition(value: u32) -> CallResult {
        match value & libc::SECCOMP_RET_ACTION_FULL {
            libc::SECCOMP_RET_ALLOW => CallResult::Allowed,
            libc::SECCOMP_RET_ERRNO => {
                CallResult::Refused(i32::try_from(value & libc::SECCOMP_RET_DATA).unwrap())
            }
            libc::SECCOMP_RET_KILL_PROCESS => CallResult::Killed,
            other => panic!("{other:#x}"),
        }
    }
}
