import { list, setting, text, url } from '../../setting.ts';
import { allowedTargets, isServerAddress } from '../outbound/allowed-targets.ts';

/** Mails, and calls to others. */
export const outboundSettings = {
  smtpUrl: setting('SMTP_URL', url('smtp', 'smtps'), 'Mail server, like `smtp://user:password@mail.example.com:587`.', {
    defaultText: 'mails are written to files in `DATA_DIR/mail`',
    secret: true,
  }),
  mailFrom: setting('MAIL_FROM', text, 'Sender of mails.', { default: 'Platform <no-reply@localhost>' }),

  outboundAllow: setting(
    'OUTBOUND_ALLOW',
    allowedTargets,
    'Hosts, addresses and CIDR ranges that outbound calls may reach although they are not public, also over http and ' +
      'on any port, like `idp.internal, 10.2.0.0/16, 127.0.0.1:9000`. All other targets must be public and use https ' +
      'on port 443 or 8443. Metadata services of clouds are never called.',
    { default: '', defaultText: 'none' },
  ),
  outboundDns: setting(
    'OUTBOUND_DNS',
    list('addresses of DNS servers between commas, each with a port if wanted', isServerAddress),
    'DNS servers that are asked for the targets of outbound calls, and for proofs of mail domains.',
    { default: '', defaultText: 'DNS servers of the system' },
  ),
} as const;
