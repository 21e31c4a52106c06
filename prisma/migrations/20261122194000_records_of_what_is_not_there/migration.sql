-- What a refused request named although it is not there for its caller. Such a record is the organization's alone: it is
-- in no other list, and in no other sums.
ALTER TABLE "activity" ADD COLUMN "named" JSONB;
