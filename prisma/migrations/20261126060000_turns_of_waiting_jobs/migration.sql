-- The last place of a turn is that of a job which waits for its first try: a retry has had its turn.
DROP INDEX jobs.jobs_turn_index;
CREATE INDEX jobs_turn_index ON jobs._private_jobs (flags, priority)
    WHERE is_available = true AND attempts = 0 AND flags IS NOT NULL;
