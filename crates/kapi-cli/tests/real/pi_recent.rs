//! What the package does in the oldest supported Pi, once more in the recent one that is pinned, too.

use crate::pi_host::PiVersion::Recent;
use crate::{
    pi_branches, pi_goal, pi_judge, pi_kernel, pi_modes, pi_ralph, pi_screen, pi_search, pi_types,
    pi_untouched,
};

#[test]
fn without_a_mode_every_request_is_the_same() {
    pi_untouched::same_requests(Recent);
}

#[test]
fn the_package_fits_its_types() {
    pi_types::fits(Recent);
}

#[test]
fn a_goal_is_planned_refused_and_proved() {
    pi_goal::planned_and_refused_once(Recent);
}

#[test]
fn a_model_of_pi_judges() {
    pi_judge::refuses_once(Recent);
}

#[test]
fn on_the_screen() {
    pi_modes::on_the_screen(Recent);
}

#[test]
fn a_key_redraws_the_goal() {
    pi_screen::key_redraws(Recent);
}

#[test]
fn as_json() {
    pi_modes::as_json(Recent);
}

#[test]
fn flag_and_switch() {
    pi_modes::flag_and_switch(Recent);
}

#[test]
fn printed() {
    pi_goal::printed(Recent);
}

#[test]
fn asked_about_first() {
    pi_goal::asked_about_first(Recent);
}

#[test]
fn without_its_child_no_tool_runs() {
    pi_goal::without_its_child(Recent);
}

#[test]
fn a_compaction_loses_no_goal() {
    pi_goal::theirs_and_compacted(Recent);
}

#[test]
fn opened_again_and_forked() {
    pi_branches::opened_again_and_forked(Recent);
}

#[test]
fn branches_of_the_tree() {
    pi_branches::branches_of_the_tree(Recent);
}

#[test]
fn a_task_and_a_loop() {
    pi_kernel::task_and_loop(Recent);
}

#[test]
fn handed_over() {
    pi_kernel::handed_over(Recent);
}

#[test]
fn ralph() {
    pi_ralph::ralph(Recent);
}

#[test]
fn a_search() {
    pi_search::search(Recent);
}
