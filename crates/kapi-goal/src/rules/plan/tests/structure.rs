//! The six operations, each where it is legal and where it is not.

use super::{json, plan, refusal, replanned, shape};

/// The plan after the operations.
fn after(before: &str, operations: &str) -> String {
    let after = replanned(&plan(before), &format!("[{operations}]"));
    shape(&after.unwrap())
}

/// The refusal of the operations.
fn denied(before: &str, operations: &str) -> String {
    refusal(replanned(&plan(before), &format!("[{operations}]")))
}

fn insert(task: &str, after: Option<&str>) -> String {
    let task = json(task);
    let anchor = after.map_or(String::new(), |id| format!(r#","insertAfter":"{id}""#));
    format!(r#"{{"op":"insert","task":{task}{anchor}}}"#)
}

fn remove(id: &str) -> String {
    format!(r#"{{"op":"remove","taskId":"{id}"}}"#)
}

fn replace(id: &str, task: &str) -> String {
    let task = json(task);
    format!(r#"{{"op":"replace","taskId":"{id}","task":{task}}}"#)
}

fn split(id: &str, into: &str) -> String {
    let into = json(into);
    format!(r#"{{"op":"split","taskId":"{id}","into":[{into}]}}"#)
}

fn merge(ids: &str, into: &str) -> String {
    let ids: Vec<String> = ids.split_whitespace().map(|id| format!("{id:?}")).collect();
    let (ids, into) = (ids.join(","), json(into));
    format!(r#"{{"op":"merge","taskIds":[{ids}],"into":{into}}}"#)
}

fn reorder(id: &str, dependencies: &str) -> String {
    let ids: Vec<String> = dependencies
        .split_whitespace()
        .map(|id| format!("{id:?}"))
        .collect();
    let ids = ids.join(",");
    format!(r#"{{"op":"reorder","taskId":"{id}","dependencies":[{ids}]}}"#)
}

/// A task that says what it blocks.
fn insert_blocking(task: &str, blocks: &str) -> String {
    insert(task, None).replace(r#""blocks":[]"#, &format!(r#""blocks":["{blocks}"]"#))
}

#[test]
fn replan_insert_adds_a_task_at_the_end_or_after_its_anchor() {
    assert_eq!(after("A! B<A", &insert("N<A", None)), "A! B<A N<A");
    assert_eq!(after("A! B<A", &insert("N<A", Some("A"))), "A! N<A B<A");
}

#[test]
fn replan_insert_that_blocks_a_task_makes_that_task_wait() {
    assert_eq!(after("A B<A", &insert_blocking("N", "B")), "A B<A,N N");
}

#[test]
fn replan_insert_refuses_an_unknown_anchor() {
    assert_eq!(
        denied("A", &insert("N", Some("X"))),
        "op_invalid: operations[0] (insert): there is no task X in the plan"
    );
}

#[test]
fn replan_insert_refuses_a_name_that_is_taken() {
    assert_eq!(
        denied("A! B", &insert("A", None)),
        "op_invalid: operations[0] (insert): task A already exists"
    );
}

#[test]
fn replan_insert_refuses_finished_work() {
    assert_eq!(
        denied("A", &insert("N!", None)),
        "op_invalid: operations[0] (insert): the new task N is already done"
    );
}

#[test]
fn replan_insert_refuses_a_dangling_dependency() {
    assert_eq!(
        denied("A", &insert("N<X", None)),
        "unknown_dep: operations[0]: task N names X, which is not in the plan"
    );
    assert_eq!(
        denied("A", &insert_blocking("N", "X")),
        "unknown_dep: operations[0]: task N names X, which is not in the plan"
    );
}

#[test]
fn replan_insert_cannot_make_a_done_task_wait() {
    assert_eq!(
        denied("A!", &insert_blocking("N", "A")),
        "op_invalid: operations[0] (insert): it changes what A depends on, and A is done"
    );
}

#[test]
fn replan_remove_takes_a_task_out_of_every_list() {
    assert_eq!(after("A B<A C<A,B", &remove("B")), "A C<A");
    assert_eq!(after("A B?<A C<B", &remove("B")), "A C");
}

#[test]
fn replan_remove_refuses_unknown_and_done_tasks() {
    assert_eq!(
        denied("A", &remove("X")),
        "op_invalid: operations[0] (remove): there is no task X in the plan"
    );
    assert_eq!(
        denied("A! B", &remove("A")),
        "op_invalid: operations[0] (remove): task A is done and cannot change"
    );
}

#[test]
fn replan_remove_takes_only_pending_and_blocked_tasks() {
    for (before, word) in [("A* B", "in_progress"), ("A~ B", "skipped")] {
        assert_eq!(
            denied(before, &remove("A")),
            format!(
                "op_invalid: operations[0] (remove): task A is {word}, and only a pending or \
                 blocked task can be removed"
            )
        );
    }
}

#[test]
fn replan_remove_refuses_what_a_done_task_depended_on() {
    assert_eq!(
        denied("A B!<A", &remove("A")),
        "op_invalid: operations[0] (remove): it changes what B depends on, and B is done"
    );
}

#[test]
fn replan_remove_refuses_to_leave_nothing() {
    assert_eq!(
        denied("A", &remove("A")),
        "empty_plan: the plan has no tasks"
    );
}

#[test]
fn replan_replace_writes_a_task_anew_in_its_place() {
    assert_eq!(after("A B<A C<B", &replace("B", "B?")), "A B? C<B");
}

#[test]
fn replan_replace_refuses_unknown_and_done_tasks() {
    assert_eq!(
        denied("A", &replace("X", "X")),
        "op_invalid: operations[0] (replace): there is no task X in the plan"
    );
    assert_eq!(
        denied("A! B", &replace("A", "A")),
        "op_invalid: operations[0] (replace): task A is done and cannot change"
    );
    assert_eq!(
        denied("A", &replace("A", "A!")),
        "op_invalid: operations[0] (replace): the new task A is already done"
    );
}

#[test]
fn replan_replace_keeps_the_id() {
    assert_eq!(
        denied("A", &replace("A", "N")),
        "op_invalid: operations[0] (replace): it replaces A with a task called N"
    );
}

#[test]
fn replan_replace_refuses_a_dangling_dependency() {
    assert_eq!(
        denied("A B", &replace("B", "B<X")),
        "unknown_dep: operations[0]: task B names X, which is not in the plan"
    );
}

#[test]
fn replan_split_rewrites_dependents() {
    assert_eq!(
        after("A B<A C<B D<C,B", &split("B", "B1 B2")),
        "A B1<A B2<A C<B1,B2 D<C,B1,B2"
    );
}

#[test]
fn replan_split_keeps_the_dependencies_that_a_part_names() {
    assert_eq!(
        after("A B<A C<B", &split("B", "B1 B2<B1")),
        "A B1<A B2<B1 C<B1,B2"
    );
}

#[test]
fn replan_split_lets_a_part_keep_the_id() {
    assert_eq!(after("A B<A C<B", &split("B", "B N<B")), "A B<A N<B C<B,N");
}

#[test]
fn replan_split_refuses_unknown_and_done_tasks() {
    assert_eq!(
        denied("A", &split("X", "M N")),
        "op_invalid: operations[0] (split): there is no task X in the plan"
    );
    assert_eq!(
        denied("A! B", &split("A", "M N")),
        "op_invalid: operations[0] (split): task A is done and cannot change"
    );
    assert_eq!(
        denied("A", &split("A", "M N!")),
        "op_invalid: operations[0] (split): the new task N is already done"
    );
}

#[test]
fn replan_split_refuses_what_a_done_task_depended_on() {
    assert_eq!(
        denied("A B!<A", &split("A", "M N")),
        "op_invalid: operations[0] (split): it changes what B depends on, and B is done"
    );
}

#[test]
fn replan_split_needs_two_parts_of_their_own_names() {
    assert_eq!(
        denied("A", &split("A", "M")),
        "op_invalid: operations[0] (split): it splits A into 1; a split needs at least two parts"
    );
    assert_eq!(
        denied("A", &split("A", "M M")),
        "op_invalid: operations[0] (split): it lists M twice"
    );
    assert_eq!(
        denied("A B", &split("A", "M B")),
        "op_invalid: operations[0] (split): task B already exists"
    );
}

#[test]
fn replan_split_refuses_a_dangling_dependency() {
    assert_eq!(
        denied("A", &split("A", "M N<A")),
        "unknown_dep: operations[0]: task N names A, which is not in the plan"
    );
}

#[test]
fn replan_merge_rewrites_dependents() {
    assert_eq!(
        after("A B<A C<B D<B,C E<C", &merge("B C", "M")),
        "A M<A D<M E<M"
    );
}

#[test]
fn replan_merge_stands_where_the_first_of_them_stood_and_may_keep_its_id() {
    assert_eq!(after("A B C D", &merge("D B", "M")), "A M C");
    assert_eq!(after("A B<A C<B D<C", &merge("B C", "C")), "A C<A D<C");
}

#[test]
fn replan_merge_keeps_the_dependencies_it_names() {
    assert_eq!(after("A Z B<A C<B", &merge("B C", "M<Z")), "A Z M<Z");
}

#[test]
fn replan_merge_refuses_unknown_and_done_tasks() {
    assert_eq!(
        denied("A", &merge("A X", "M")),
        "op_invalid: operations[0] (merge): there is no task X in the plan"
    );
    assert_eq!(
        denied("A! B", &merge("A B", "M")),
        "op_invalid: operations[0] (merge): task A is done and cannot change"
    );
    assert_eq!(
        denied("A B", &merge("A B", "M!")),
        "op_invalid: operations[0] (merge): the new task M is already done"
    );
}

#[test]
fn replan_merge_needs_two_tasks_and_a_free_name() {
    for (ids, message) in [
        ("", "it merges 0 into M; a merge needs at least two tasks"),
        ("A", "it merges 1 into M; a merge needs at least two tasks"),
        ("A A", "it lists A twice"),
    ] {
        assert_eq!(
            denied("A B", &merge(ids, "M")),
            format!("op_invalid: operations[0] (merge): {message}")
        );
    }
    assert_eq!(
        denied("A B C", &merge("A B", "C")),
        "op_invalid: operations[0] (merge): task C already exists"
    );
}

#[test]
fn replan_merge_refuses_a_dangling_dependency() {
    assert_eq!(
        denied("A B", &merge("A B", "M<A")),
        "unknown_dep: operations[0]: task M names A, which is not in the plan"
    );
}

#[test]
fn replan_merge_refuses_what_a_done_task_depended_on() {
    assert_eq!(
        denied("A B C!<A", &merge("A B", "M")),
        "op_invalid: operations[0] (merge): it changes what C depends on, and C is done"
    );
}

#[test]
fn replan_merge_around_a_task_in_between_is_a_cycle() {
    assert_eq!(
        denied("A X<A B<X", &merge("A B", "M")),
        "cycle: operations[0]: tasks depend on each other in a cycle: M -> X -> M"
    );
}

#[test]
fn replan_reorder_gives_other_dependencies() {
    assert_eq!(after("A B<A C<B", &reorder("C", "A A")), "A B<A C<A");
    assert_eq!(after("A B<A", &reorder("B", "")), "A B");
}

#[test]
fn replan_reorder_refuses_unknown_and_done_tasks() {
    assert_eq!(
        denied("A", &reorder("X", "A")),
        "op_invalid: operations[0] (reorder): there is no task X in the plan"
    );
    assert_eq!(
        denied("A! B", &reorder("A", "B")),
        "op_invalid: operations[0] (reorder): task A is done and cannot change"
    );
}

#[test]
fn replan_reorder_refuses_a_dangling_dependency() {
    assert_eq!(
        denied("A B", &reorder("B", "X")),
        "unknown_dep: operations[0]: task B names X, which is not in the plan"
    );
}

#[test]
fn replan_rejects_a_cycle_and_changes_nothing() {
    assert_eq!(
        denied("A B<A C<B", &reorder("A", "C")),
        "cycle: operations[0]: tasks depend on each other in a cycle: A -> C -> B -> A"
    );
    assert_eq!(
        denied("A", &reorder("A", "A")),
        "cycle: operations[0]: tasks depend on each other in a cycle: A -> A"
    );
    assert_eq!(
        denied("A", &insert_blocking("N", "N")),
        "cycle: operations[0]: tasks depend on each other in a cycle: N -> N"
    );
}

#[test]
fn replan_is_one_batch_whose_tasks_may_name_each_other() {
    let both = format!("{},{}", insert("N<M", None), insert("M", None));
    assert_eq!(after("A", &both), "A N<M M");
    let blocking = format!("{},{}", insert_blocking("N", "M"), insert("M", None));
    assert_eq!(after("A", &blocking), "A N M<N");
    let statement_of_the_split = format!(
        "{},{},{}",
        insert_blocking("N", "M"),
        split("N", "N1 N2"),
        insert("M", None)
    );
    assert_eq!(after("A", &statement_of_the_split), "A N1 N2 M<N1,N2");
    let statement_of_the_merged = format!(
        "{},{},{}",
        insert_blocking("N", "M"),
        merge("A N", "X"),
        insert("M", None)
    );
    assert_eq!(after("A", &statement_of_the_merged), "X M<X");
}

#[test]
fn replan_names_the_operation_that_is_wrong_and_applies_none() {
    let batch = format!("{},{}", remove("A"), remove("A"));
    assert_eq!(
        denied("A B", &batch),
        "op_invalid: operations[1] (remove): there is no task A in the plan"
    );
}

#[test]
fn replan_lets_a_removed_name_be_used_again() {
    let batch = format!("{},{}", remove("A"), insert("A", None));
    assert_eq!(after("A B<A", &batch), "B A");
}
