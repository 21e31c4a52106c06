-- Steps of before get keys that are made from their names. Of several with one name, all but the first have a part of
-- their identifiers too. Steps of the built-in recipes get the keys by which the others of their augmentation refer to
-- them.
ALTER TABLE "augmentation_steps" ADD COLUMN     "key" TEXT;

WITH built_in (name, key) AS (VALUES
  ('Search the documents', 'search'),
  ('Answer from the parts', 'generate'),
  ('Make a plan', 'tasks'),
  ('Work on the plan', 'work'),
  ('Check the result', 'review'),
  ('Collect material', 'search'),
  ('Write the report', 'draft'),
  ('Generate an answer', 'generate'),
  ('Cut the text', 'chunks'),
  ('Summarize each part', 'parts'),
  ('Summarize the parts', 'whole'),
  ('Find the questions', 'questions'),
  ('Read the encyclopedia', 'encyclopedia'),
  ('Read pages', 'pages'),
  ('Write the report', 'report')
), named AS (
  SELECT p.id, g.augmentation_id, g.position AS stage, p.position,
    coalesce((SELECT b.key FROM built_in b WHERE b.name = p.name AND EXISTS (SELECT FROM augmentation_steps o
        JOIN augmentation_stages os ON os.id = o.stage_id WHERE os.augmentation_id = g.augmentation_id
          AND strpos(o.config::text, '{{steps.' || b.key || '.') > 0) LIMIT 1),
      nullif(trim('-' FROM left(regexp_replace(lower(p.name), '[^a-z0-9]+', '-', 'g'), 40)), ''), 'step') AS base
  FROM augmentation_steps p JOIN augmentation_stages g ON g.id = p.stage_id
), counted AS (
  SELECT n.*, row_number() OVER (PARTITION BY n.augmentation_id, n.base ORDER BY n.stage, n.position) AS n FROM named n
)
UPDATE augmentation_steps p
SET key = CASE c.n WHEN 1 THEN c.base ELSE c.base || '-' || lower(right(c.id, 12)) END
FROM counted c WHERE c.id = p.id;

ALTER TABLE "augmentation_steps" ALTER COLUMN     "key" SET NOT NULL;
