"""The tests that `tools/guest run --tests` runs: those about what differs between machines.

Python is ten times slower in an emulated guest, and so is a run: all tests of these programs would
take hours. A program without names is run whole.
"""

SAMPLE = {
    "sandbox-spec": [],
    "sandbox-cgroup-v2": [],
    "sandbox-scope": [],
    "sandbox-limits": [
        "memory_that_runs_out_kills_inside_the_group_only",
        "memory_in_files_that_are_not_on_disk_counts",
        "a_fork_bomb_stays_within_its_number",
        "processors_are_shared_as_told",
        "nothing_outlives_the_command",
        "a_caller_that_is_killed_takes_everything_with_it",
    ],
    "sandbox-walls": [
        "a_run_by_root_is_no_root_outside",
        "files_of_root_stay_root_s_on_disk",
        "proc_has_the_processes_of_the_run_only",
        "the_walls_in_force_are_listed",
    ],
    "cli-daemon": [
        "the_first_command_that_needs_it_starts_it_and_the_next_ones_use_it",
        "it_keeps_nothing_of_who_started_it",
        "mounts_come_back_by_themselves_after_kill_9",
        "a_keeper_ends_with_a_daemon_that_ends_in_order",
        "a_keeper_holds_nothing_of_the_store",
        "a_manager_that_takes_its_time_does_not_delay_the_daemon",
        "a_service_manager_can_start_it_by_its_socket",
        "a_signal_ends_it_in_order",
    ],
    "cli-run": [
        "the_clone_is_at_the_projects_own_path_and_the_project_is_untouched",
        "files_of_the_clone_belong_to_who_owns_the_project",
        "the_store_and_other_clones_are_out_of_sight",
        "it_ends_as_the_command_does",
        "time_is_limited",
        "memory_is_limited",
        "processes_are_limited",
        "clones_are_kept_and_removed_as_asked",
        "every_run_is_recorded",
    ],
    "cli-promote": [
        "all_that_a_clone_changed_reaches_the_project_and_goes_back_exactly",
        "a_check_sees_exactly_the_merged_tree",
        "a_check_that_fails_changes_and_leaves_nothing",
        "undo_keeps_what_was_edited_since",
    ],
}
