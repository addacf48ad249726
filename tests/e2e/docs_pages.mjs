// Reads the pages for users: their fenced blocks, and the commands in them.
//
// A block's language says what it contains: `sh` (commands), `text` (output, pictures), or `json`, `python`, `sql` or `toml` with the name
// of a file that later commands of the page use. A comment before a block of commands may change how it is tested:
//   <!-- test: exits 1 -->               the commands must end with this exit code instead of 0
//   <!-- test: parse: needs docker -->   the commands cannot run here, for this reason; only their flags and files are checked
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MARK = /^<!-- test: (?:exits (?<exits>\d+)|parse: (?<reason>\S.*)) -->$/;
const PROGRAM = /^(?:sudo )?(?:[A-Z_]+=\S+ )*twscope /;

/** Returns every page that may have commands, as paths from the root. */
export const pages = () => ['.', 'docs'].flatMap((folder) => readdirSync(join(ROOT, folder)).map((name) => join(folder, name)))
    .filter((name) => name.endsWith('.md')).concat('tests/bench/STRESS.md');

export const read = (page) => readFileSync(join(ROOT, page), 'utf8');

/** Returns the fenced blocks of a page: language, file (if it names one), text, line, and its mark as `exits` or `reason`. */
export function blocksOf(page, text) {
    const blocks = [];
    let block = null;
    let mark = null;
    for (const [index, line] of text.split('\n').entries()) {
        const where = `${page}:${index + 1}`;
        if (block && line === '```') {
            blocks.push(block);
            block = null;
        } else if (block) {
            block.text += `${line}\n`;
        } else if (line.startsWith('```')) {
            const [language, file, ...more] = line.slice(3).split(' ');
            if (more.length > 0) throw new Error(`${where}: expected a language and at most the name of a file`);
            block = { where, language, file, text: '', exits: Number(mark?.exits ?? 0), reason: mark?.reason };
            mark = null;
        } else if (line.startsWith('<!--')) {
            mark = MARK.exec(line)?.groups;
            if (!mark) throw new Error(`${where}: this mark says nothing: ${line}`);
        } else if (mark) {
            throw new Error(`${where}: a mark stands directly before its block`);
        }
    }
    if (block) throw new Error(`${block.where}: this block does not end`);
    return blocks;
}

const bash = (...args) => spawnSync('bash', args, { encoding: 'utf8' });

/** Returns the commands of a block unchanged. A command may have several lines. */
export function commandsOf(block) {
    const commands = [];
    let command = '';
    for (const line of block.text.split('\n')) {
        if (command === '' && /^\s*(#.*)?$/.test(line)) continue;
        command += command === '' ? line : `\n${line}`;
        if (command.endsWith('\\') || bash('-nc', command).status !== 0) continue;
        commands.push(command);
        command = '';
    }
    if (command !== '') throw new Error(`${block.where}: bash does not understand: ${command}`);
    return commands;
}

/** Returns the command without parts that change nothing: comments, line breaks, and the program's folder. */
export const plain = (command) => command.replace(/\\\n\s*/g, '').replace(/\s+#.*$/, '')
    .replace(/^((?:sudo )?)\.\/dev run (?=\w)/, '$1twscope ');

export const isProgram = (command) => PROGRAM.test(plain(command));

/** Returns the faults of a command that cannot run here (unknown flags, missing files and services); empty if there are none. */
export function complaintsAbout(command, twscope) {
    const text = plain(command);
    const complaints = [];
    const demand = (condition, what) => condition || complaints.push(`${what}, in: ${text}`);
    for (const [, name, rest] of text.matchAll(/\btwscope ([a-z]+)((?: [^|;&]*)?)/g)) {
        if (/^(systemctl|journalctl|sudo systemctl|man|docker compose)/.test(text) || text.startsWith('sudo apt')) break;
        const help = spawnSync(twscope, [name, '--help'], { encoding: 'utf8' });
        demand(help.status === 0, `there is no command '${name}'`);
        for (const [, flag] of rest.matchAll(/ (--?[a-zA-Z][\w-]*)/g)) {
            demand(new RegExp(`(^|[\\s,])${flag}([\\s,]|$)`, 'm').test(help.stdout), `'${name}' has no flag ${flag}`);
        }
    }
    for (const [, name, argument] of text.matchAll(/\.\/dev ([a-z]+)(?: ([a-z]\S*))?/g)) {
        demand(new RegExp(`^  ${name}\\b`, 'm').test(bash(join(ROOT, 'dev'), 'help').stdout), `./dev has no command '${name}'`);
        demand(name !== 'build' || !argument || read('CMakePresets.json').includes(`"name": "${argument}"`),
            `there is no preset '${argument}'`);
    }
    if (/^docker /.test(text)) {
        const compose = read('docker/compose.yaml');
        for (const [, file] of text.matchAll(/ -f (\S+)/g)) demand(existsSync(join(ROOT, file)), `there is no ${file}`);
        for (const [, name] of text.matchAll(/--profile (\S+)/g)) {
            demand(new RegExp(`profiles: \\[[^\\]]*\\b${name}\\b`).test(compose), `there is no profile '${name}'`);
        }
        for (const [, name] of text.matchAll(/compose exec (\S+)/g)) {
            demand(compose.includes(`\n  ${name}:\n`), `there is no service '${name}'`);
        }
    }
    return complaints;
}

/** Returns the arguments with which the compose file starts twscope. */
export const composeCommands = () => [...read('docker/compose.yaml').matchAll(/^    image: twscope\n    command: \[(.*)\]$/gm)]
    .map(([, list]) => `twscope ${list.split(', ').map((word) => word.replace(/^"(.*)"$/, '$1')).join(' ')}`);

/** Returns a page's heading as links name it. */
const anchorOf = (heading) => heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-');

const hasHeading = (page, anchor) => [...readFileSync(page, 'utf8').matchAll(/^#+ (.*)$/gm)].some(([, text]) => anchorOf(text) === anchor);

/** Returns the relative links of a page whose file or heading does not exist. */
export function deadLinks(page) {
    const prose = read(page).replace(/^```[^]*?^```$/gm, '');
    return [...prose.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?[^)]*\)/g)].filter(([, target, anchor]) => {
        const file = target ? join(ROOT, dirname(page), target) : join(ROOT, page);
        return !existsSync(file) || (anchor !== undefined && !hasHeading(file, anchor));
    }).map(([link]) => `${page}: ${link}`);
}

/** Returns the files and folders of this repository that a page names and that do not exist. */
export const missingPaths = (page) => [...read(page).matchAll(/`((?:snapshot|map|proxy|tests|docs|docker)\/[\w./-]*)`/g)]
    .map(([, path]) => path).filter((path) => !existsSync(join(ROOT, path))).map((path) => `${page}: ${path}`);

/** Returns the pages in docs/ to which no link leads from the README. */
export function unlinkedPages() {
    const readme = read('README.md');
    return pages().filter((page) => relative('docs', page).startsWith('..') === false && !readme.includes(`](${page})`));
}
