ALTER TABLE "notifications" ADD COLUMN     "resolved_at" TIMESTAMPTZ(3);

-- What is not true any more of what was told before: of places that are gone, of places that their recipients cannot
-- open, of a state that has passed. What is about the security of an account stays.
UPDATE notifications n SET resolved_at = now()
WHERE n.category <> 'security' AND n.expires_at > now() AND n.org_id IS NOT NULL AND (
  NOT EXISTS (SELECT FROM organizations o WHERE o.id = n.org_id AND o.deleted_at IS NULL)
  OR n.workspace_id IS NOT NULL
    AND NOT EXISTS (SELECT FROM workspaces w WHERE w.id = n.workspace_id AND w.deleted_at IS NULL)
  OR n.namespace_id IS NOT NULL AND NOT EXISTS (SELECT FROM namespaces p WHERE p.id = n.namespace_id)
  OR n.environment_id IS NOT NULL AND NOT EXISTS (SELECT FROM environments e WHERE e.id = n.environment_id)
  OR n.app_id IS NOT NULL AND NOT EXISTS (SELECT FROM apps a WHERE a.id = n.app_id)
  OR n.source_event NOT IN ('organization_member.deleted', 'workspace_member.deleted') AND NOT CASE
    WHEN n.workspace_id IS NULL THEN EXISTS (
      SELECT FROM organization_members m WHERE m.org_id = n.org_id AND m.user_id = n.recipient_id)
    ELSE EXISTS (
      SELECT FROM workspace_members m WHERE m.workspace_id = n.workspace_id AND m.user_id = n.recipient_id)
      OR EXISTS (SELECT FROM organization_members m
        WHERE m.org_id = n.org_id AND m.user_id = n.recipient_id AND m.role IN ('admin', 'owner')) END
  OR NOT CASE n.source_event
    WHEN 'organization_member.updated' THEN EXISTS (SELECT FROM organization_members m
      WHERE m.org_id = n.org_id AND m.user_id = n.recipient_id AND m.role = coalesce(n.metadata->>'role', m.role))
    WHEN 'organization_member.deleted' THEN NOT EXISTS (SELECT FROM organization_members m
      WHERE m.org_id = n.org_id AND m.user_id = n.recipient_id)
    WHEN 'workspace_member.created' THEN EXISTS (SELECT FROM workspace_members m
      WHERE m.workspace_id = n.workspace_id AND m.user_id = n.recipient_id)
    WHEN 'workspace_member.updated' THEN EXISTS (SELECT FROM workspace_members m
      WHERE m.workspace_id = n.workspace_id AND m.user_id = n.recipient_id
        AND m.role = coalesce(n.metadata->>'role', m.role))
    WHEN 'workspace_member.deleted' THEN NOT EXISTS (SELECT FROM workspace_members m
      WHERE m.workspace_id = n.workspace_id AND m.user_id = n.recipient_id)
    WHEN 'connection.needs_reauth' THEN EXISTS (SELECT FROM connections c
      WHERE c.id = n.metadata->>'resource_id' AND c.status IN ('needs_reauth', 'pending'))
    WHEN 'secret.expiring' THEN EXISTS (SELECT FROM secrets s WHERE s.id = n.metadata->>'resource_id'
      AND s.status <> 'deleted' AND s.expires_at = (n.metadata->>'expires_at')::timestamptz)
    WHEN 'secret.rotation_due' THEN EXISTS (SELECT FROM secrets s WHERE s.id = n.metadata->>'resource_id'
      AND s.status = 'active'
      AND coalesce(s.last_rotated_at, s.created_at) + s.rotation_reminder_days * interval '1 day' <= now())
    WHEN 'api_token.expiring' THEN EXISTS (SELECT FROM api_tokens k WHERE k.id = n.metadata->>'resource_id'
      AND k.expires_at = (n.metadata->>'expires_at')::timestamptz AND k.rotated_at IS NULL AND k.revoked_at IS NULL)
    WHEN 'app_token.expiring' THEN EXISTS (SELECT FROM api_tokens k WHERE k.id = n.metadata->>'resource_id'
      AND k.expires_at = (n.metadata->>'expires_at')::timestamptz AND k.rotated_at IS NULL AND k.revoked_at IS NULL)
    WHEN 'provider_account.degraded' THEN EXISTS (SELECT FROM provider_accounts a
      WHERE a.id = n.metadata->>'resource_id' AND a.enabled AND a.status = 'degraded')
    WHEN 'provider_account.updated' THEN EXISTS (SELECT FROM provider_accounts a
      WHERE a.id = n.metadata->>'resource_id' AND a.enabled AND a.status = 'error')
    WHEN 'model.updated' THEN EXISTS (SELECT FROM logical_models t
      WHERE t.org_id = n.org_id AND t.logical_model_id = n.metadata->>'resource_id'
        AND coalesce(t.status_by_hand = 'unavailable', NOT EXISTS (SELECT FROM model_targets m
          JOIN provider_accounts a ON a.id = m.provider_account_id
          WHERE m.model_id = t.id AND m.enabled AND a.enabled AND a.status = 'active'
            AND m.consecutive_failures < 3)))
    WHEN 'identity_provider.certificate_ending' THEN EXISTS (SELECT FROM identity_providers p
      WHERE p.id = n.metadata->>'resource_id' AND p.is_active AND p.certificate_ends_at = n.expires_at)
    ELSE true END);

-- a newer one of a state takes the place of those before it
UPDATE notifications n SET resolved_at = now() FROM notifications newer
WHERE n.resolved_at IS NULL AND n.expires_at > now()
  AND n.source_event IN ('secret.expiring', 'secret.rotation_due', 'api_token.expiring', 'app_token.expiring',
    'connection.needs_reauth', 'provider_account.degraded', 'provider_account.updated', 'model.updated',
    'identity_provider.certificate_ending')
  AND newer.recipient_id = n.recipient_id AND newer.id > n.id AND newer.source_event = n.source_event
  AND newer.org_id = n.org_id AND newer.metadata->>'resource_id' = n.metadata->>'resource_id';

-- what a badge counts
DROP INDEX notifications_unread;
CREATE INDEX notifications_unread ON notifications (recipient_id, category) INCLUDE (expires_at)
  WHERE status = 'unread' AND resolved_at IS NULL;

-- what a change of a resource may end
CREATE INDEX notifications_about ON notifications ((metadata->>'resource_id')) WHERE resolved_at IS NULL;
