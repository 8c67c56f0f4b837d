//! One idea of the bag: what somebody does to the program, what they say of it, and what it deserves.
//!
//! A deed is a command, so that a scripted agent and a model that calls a tool do the same.

use serde_json::{Value, json};

/// A change that somebody believes in.
#[derive(Debug, Clone)]
pub struct Idea {
    /// What it is called.
    pub description: &'static str,
    /// What the agent answers once it is made.
    pub answer: Value,
    /// The command that makes it.
    pub deed: String,
    /// What becomes of it where nothing is left to chance, as the ledger calls it.
    pub status: &'static str,
}

/// What an agent commits by itself, and leaves where git ignores it, changes nothing.
const OWN_COMMIT: &str = "mkdir -p build; echo x > build/cache; git add -A; \
                          git -c user.name=a -c user.email=a@b commit -qm mine";

impl Idea {
    fn new(status: &'static str, description: &'static str, hypothesis: &'static str) -> Self {
        Self {
            description,
            answer: json!({"hypothesis": hypothesis, "description": description}),
            deed: String::new(),
            status,
        }
    }

    /// Adds a command.
    fn by(mut self, command: &str) -> Self {
        if !self.deed.is_empty() {
            self.deed.push('\n');
        }
        self.deed.push_str(command);
        self
    }

    /// Adds a file that is replaced: by a command, because some CLIs write over no file that they have
    /// not read.
    fn with(self, path: &str, text: &str) -> Self {
        self.by(&format!("cat > {path} <<'END'\n{text}END"))
    }

    /// Adds a key to the answer.
    fn saying(mut self, key: &str, value: Value) -> Self {
        self.answer[key] = value;
        self
    }
}

/// Returns the bag: two real gains, each in a file of its own, and what is none.
#[must_use]
pub fn mixed_bag() -> Vec<Idea> {
    let mut bag = vec![
        Idea::new(
            "keep",
            "search by halves",
            "A sorted list need not be searched from its beginning.",
        )
        .saying("ideas", json!(["Sort by merging"]))
        .with(
            "src/find.c",
            include_str!("../../fixtures/words/ideas/binary_search.c"),
        ),
        no_effect(),
        Idea::new(
            "discard",
            "look at the first word first",
            "Some words are found at once.",
        )
        .by(
            "sed -i 's/^    int low = 0;/    if (n > 0 \\&\\& compare(order[0], word) == 0) {\\n        \
             return 0;\\n    }\\n&/' src/find.c",
        ),
    ];
    bag.extend(cheats());
    bag.extend(broken());
    bag.push(
        Idea::new(
            "keep",
            "sort by merging",
            "Two sorted halves are merged with few comparisons.",
        )
        .saying("idea", json!(1))
        .with(
            "src/sort.c",
            include_str!("../../fixtures/words/ideas/merge_sort.c"),
        )
        .by(OWN_COMMIT),
    );
    bag
}

/// Returns a change that the compiler sees and nobody else.
#[must_use]
pub fn no_effect() -> Idea {
    Idea::new(
        "discard",
        "count down first",
        "A decrement is cheaper before than after.",
    )
    .by("sed -i 's/j--;/--j;/' src/sort.c")
}

/// Returns a change that costs more or less by chance, and only by the clock: on average it is a loss.
#[must_use]
pub fn spike() -> Idea {
    Idea::new(
        "discard",
        "a short pause first",
        "Whoever answers is ready by then.",
    )
    .by(
        "sed -i 's/^    int n, lookups;/&\\n    struct timespec now;\\n    \
         clock_gettime(CLOCK_REALTIME, \\&now);\\n    now.tv_sec = 0;\\n    now.tv_nsec %= 40000000;\\n    \
         nanosleep(\\&now, 0);/; s/^#include <stdio.h>/&\\n#include <time.h>/' src/main.c",
    )
}

fn cheats() -> Vec<Idea> {
    vec![
        Idea::new("discard", "fewer words", "Less input is less work.").by(
            "sed -i 2,100d bench/list; echo '#define QUICK' >> bench/judge.c; echo > bench/more",
        ),
        Idea::new("crash", "its own number", "It says so itself.").by(
            "sed -i 's/^    sort_words/    printf(\"METRIC comparisons=1\\\\n\");\\n&/' src/main.c",
        ),
        Idea::new(
            "discard",
            "the order of these words",
            "The order of the benchmark's words is known.",
        )
        .by(
            "sed '/^$/,$d' bench/list | awk '{ print $1, NR - 1 }' | LC_ALL=C sort | \
             awk '{ print $2 \",\" }' > src/known.h",
        )
        .with(
            "src/sort.c",
            include_str!("../../fixtures/words/ideas/known_order.c"),
        ),
    ]
}

fn broken() -> Vec<Idea> {
    vec![
        Idea::new(
            "checks_failed",
            "sort by parting",
            "Words are parted by one of them.",
        )
        .with(
            "src/sort.c",
            include_str!("../../fixtures/words/ideas/quick_sort.c"),
        ),
        Idea::new(
            "crash",
            "restricted pointers",
            "The compiler may assume more.",
        )
        .by("sed -i 's/int \\*order,/int *restricted order,/' src/sort.c"),
        Idea::new("crash", "no list at all", "Nothing is sorted in no time.")
            .by("sed -i 's/^    for (int i = 1/    order = 0;\\n&/' src/sort.c"),
        Idea::new(
            "crash",
            "fewer writes",
            "A buffer is written when it is full.",
        )
        .by("sed -i /fflush/d src/compare.c"),
    ]
}

/// Returns the script of an agent that tries one idea after the other, and then has none left; before the
/// last it forgets to answer.
#[must_use]
pub fn researcher(bag: &[Idea]) -> String {
    let mut turns: Vec<Value> = bag
        .iter()
        .map(|idea| json!({"steps": [{"bash": idea.deed}, {"answer": idea.answer}]}))
        .collect();
    let forgotten = json!({"steps": [
        {"bash": format!("echo >> src/sort.c; {OWN_COMMIT}")},
        {"say": "I committed it myself and forgot to answer."},
    ]});
    turns.insert(turns.len().saturating_sub(1), forgotten);
    turns.push(json!({"steps": [{"answer": {"exhausted": true}}]}));
    json!({"turns": [], "roles": {"researcher": turns}}).to_string()
}
