-- What decisions 27 and 28 say of rows of before. It stands apart from the change of the tables: nobody waits while the
-- audit trail is read.

UPDATE "identity_links" l SET "ended_at" = CURRENT_TIMESTAMP
  WHERE NOT EXISTS (SELECT FROM "organization_members" m JOIN "organizations" o ON o."id" = m."org_id"
    WHERE m."org_id" = l."org_id" AND m."user_id" = l."user_id" AND o."deleted_at" IS NULL);

-- An account whose address nobody has proven, and that an identity provider without a proof of the domain leads to,
-- does not hold its address any more: whoever has the address can register with it, and confirming it or resetting a
-- password ends no link. Such an account with a password signs in with its user name. Where the provider is switched
-- off, the account keeps its address until the provider signs it in again.
UPDATE "users" u SET "email_key" = NULL
  WHERE NOT u."is_verified" AND u."deactivated_at" IS NULL
    AND EXISTS (SELECT FROM "identity_links" l JOIN "identity_providers" p ON p."id" = l."identity_provider_id"
      WHERE l."user_id" = u."id" AND l."ended_at" IS NULL AND p."is_active" AND NOT EXISTS (
        SELECT FROM "identity_provider_domains" d WHERE d."org_id" = l."org_id" AND d."state" = 'proven'
          AND d."domain" = lower(split_part(u."email", '@', -1))));

-- Who was added to a workspace as a viewer became a member of the organization, and is a guest of it now (decision 28).
-- That takes from nobody what they were given or use on purpose: not from whoever has, or had, another role than at
-- first, was invited to the organization, is managed by it or comes from its identity provider, or has ever asked for
-- its secrets.
UPDATE "organization_members" m SET "role" = 'viewer', "updated_at" = CURRENT_TIMESTAMP
  WHERE m."role" = 'member' AND m."updated_at" = m."created_at"
    AND EXISTS (SELECT FROM "workspace_members" w WHERE w."org_id" = m."org_id" AND w."user_id" = m."user_id"
      AND w."created_at" = m."created_at" AND w."added_by" = m."added_by" AND w."role" = 'viewer'
      AND w."updated_at" = w."created_at")
    AND NOT EXISTS (SELECT FROM "workspace_members" w WHERE w."org_id" = m."org_id" AND w."user_id" = m."user_id"
      AND w."role" <> 'viewer')
    AND NOT EXISTS (SELECT FROM "invitations" i WHERE i."org_id" = m."org_id" AND i."accepted_by" = m."user_id")
    AND NOT EXISTS (SELECT FROM "users" u WHERE u."id" = m."user_id" AND u."home_org_id" = m."org_id")
    AND NOT EXISTS (SELECT FROM "identity_links" l WHERE l."org_id" = m."org_id" AND l."user_id" = m."user_id")
    AND NOT EXISTS (SELECT FROM "activity" a WHERE a."org_id" = m."org_id" AND a."user_id" = m."user_id"
      AND a."resource_type" = 'secret' AND a."workspace_id" IS NULL);
