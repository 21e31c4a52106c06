// Makes a new signing key the active one. Running services notice it; tokens signed by older keys stay valid until they
// expire.
import { SigningKeys } from '../access/signing-keys.ts';
import { commandLine, loadConfig } from '../config.ts';

try {
  commandLine();
  const { keysDir } = loadConfig();
  const kid = await SigningKeys.rotate(keysDir);
  console.log(`Access tokens are signed by the new key ${kid} of ${keysDir} within a few seconds.`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
