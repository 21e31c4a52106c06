-- Apart from the constraints themselves: rows stay readable and writable while they are read.
ALTER TABLE organizations VALIDATE CONSTRAINT organizations_factor_grace_days;
ALTER TABLE organizations VALIDATE CONSTRAINT organizations_step_up;
ALTER TABLE webhooks VALIDATE CONSTRAINT webhooks_begun;
