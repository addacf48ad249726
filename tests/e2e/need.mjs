// Imported first by whatever plays with the real peers: without them a test says so and counts as skipped;
// with TW_E2E_REQUIRED set it fails instead.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const SKIPPED = 77; // SKIP_RETURN_CODE in CMakeLists.txt
const PEERS = ['/usr/games/DDNet-Server', fileURLToPath(new URL('node_modules/teeworlds', import.meta.url))];

const missing = PEERS.filter((path) => !existsSync(path));
if (missing.length > 0) {
    console.error(`${process.env.TW_E2E_REQUIRED ? 'error' : 'skipped'}: not installed: ${missing.join(', ')}; ` +
        './dev test installs what this needs');
    process.exit(process.env.TW_E2E_REQUIRED ? 1 : SKIPPED);
}
