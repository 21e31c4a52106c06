-- Jobs take turns by the flag that names whose they are. The last place that each has, and the first of each task, are
-- looked up for every job that is added.
CREATE INDEX jobs_turn_index ON jobs._private_jobs (flags, priority) WHERE is_available = true AND flags IS NOT NULL;
CREATE INDEX jobs_front_index ON jobs._private_jobs (task_id, priority)
    WHERE is_available = true AND attempts = 0 AND flags IS NOT NULL;
