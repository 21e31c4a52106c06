-- AlterTable
ALTER TABLE "augmentation_steps" ADD COLUMN     "action" TEXT,
ADD COLUMN     "tool_slug" TEXT;

-- Steps of before name the tools of their instances, as far as these are there.
UPDATE augmentation_steps p SET tool_slug = t.slug
FROM tool_instances i JOIN tools t ON t.id = i.tool_id WHERE i.id = p.tool_instance_id;
