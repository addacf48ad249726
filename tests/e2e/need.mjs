// Called first by every program that plays with the real peers. Without them, the test reports this and counts as skipped; with
// TW_E2E_REQUIRED set, it fails instead.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const SKIPPED = 77; // SKIP_RETURN_CODE in CMakeLists.txt
export const CLIENT_LIBRARY = fileURLToPath(new URL('node_modules/teeworlds', import.meta.url));

export function need(...paths) {
    const missing = paths.filter((path) => !existsSync(path));
    if (missing.length === 0) return;
    console.error(`${process.env.TW_E2E_REQUIRED ? 'error' : 'skipped'}: not installed: ${missing.join(', ')}; ` +
        './dev test installs what this needs');
    process.exit(process.env.TW_E2E_REQUIRED ? 1 : SKIPPED);
}
