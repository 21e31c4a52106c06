-- Steps of before get keys that are made from their names, like those of new ones. Of several with one name, all but the
-- first have a part of their identifiers too.
ALTER TABLE "augmentation_steps" ADD COLUMN     "key" TEXT;

WITH named AS (
  SELECT p.id, g.augmentation_id, g.position AS stage, p.position,
    coalesce(nullif(trim('-' FROM left(regexp_replace(lower(p.name), '[^a-z0-9]+', '-', 'g'), 40)), ''), 'step') AS base
  FROM augmentation_steps p JOIN augmentation_stages g ON g.id = p.stage_id
), counted AS (
  SELECT n.*, row_number() OVER (PARTITION BY n.augmentation_id, n.base ORDER BY n.stage, n.position) AS n FROM named n
)
UPDATE augmentation_steps p
SET key = CASE c.n WHEN 1 THEN c.base ELSE c.base || '-' || lower(right(c.id, 12)) END
FROM counted c WHERE c.id = p.id;

ALTER TABLE "augmentation_steps" ALTER COLUMN     "key" SET NOT NULL;
