// Creates elements. Text that a peer can choose is inserted only through textContent, so it is never parsed as HTML.

export function elementById<T extends HTMLElement = HTMLElement>(id: string): T {
    const found = document.getElementById(id);
    if (!found) throw new Error(`no element ${id}`);
    return found as T;
}

type Child = Node | string | number | null | undefined;

export function makeElement<K extends keyof HTMLElementTagNameMap>(
    name: K, className = '', ...children: Child[]): HTMLElementTagNameMap[K] {
    const made = document.createElement(name);
    if (className) made.className = className;
    for (const child of children) {
        if (child === null || child === undefined) continue;
        made.append(child instanceof Node ? child : document.createTextNode(visibleText(String(child))));
    }
    return made;
}

// Control characters, and characters that change the direction of text, with which a name could disguise itself.
const HIDDEN_CHARACTERS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

/** Returns the text with hidden characters made visible. */
export function visibleText(text: string): string {
    return text.replace(HIDDEN_CHARACTERS, (hidden) => `⟨${hidden.charCodeAt(0).toString(16)}⟩`);
}

export const setChildren = (parent: HTMLElement, children: Node[]): void => parent.replaceChildren(...children);

export function makeButton(text: string, title: string, act: () => void): HTMLButtonElement {
    const made = makeElement('button', '', text);
    made.type = 'button';
    made.title = title;
    made.addEventListener('click', act);
    return made;
}

/** Makes a button that looks like a link. */
export function makeLinkButton(text: string, title: string, act: () => void, className = ''): HTMLButtonElement {
    const made = makeButton(text, title, act);
    made.className = `link ${className}`;
    return made;
}

/** Makes a link to another site, which is not told the address of this page. */
export function makeLink(address: string, text: string): HTMLAnchorElement {
    const made = makeElement('a', '', text);
    made.href = address;
    made.target = '_blank';
    made.rel = 'noreferrer';
    return made;
}

export function makeRow(...cells: (Child | HTMLTableCellElement)[]): HTMLTableRowElement {
    return makeElement('tr', '', ...cells.map((cell) => (cell instanceof HTMLTableCellElement ? cell : makeElement('td', '', cell))));
}

export const numberCell = (text: Child, className = ''): HTMLTableCellElement => makeElement('td', `number ${className}`, text);

/** Makes the browser download a file. */
export function saveFile(blob: Blob, name: string): void {
    const link = makeElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// Updates elements in place, so that they keep a press, the focus or selected text while their content changes.

const nodeKey = (node: Node): string | undefined => (node instanceof HTMLElement ? node.dataset['key'] : undefined);

/** Gives an element a key that identifies it among its siblings. An element with listeners needs a key, or an
 *  ancestor that has a key. */
export function withKey<T extends HTMLElement>(key: string | number, element: T): T {
    element.dataset['key'] = `${key}`;
    return element;
}

/** Gives an element the wanted children. An existing child with the same key, or without a key at the same position, is kept
 *  and only its content is updated; its listeners stay the first ones. */
export function updateChildren(parent: Element, wanted: readonly Node[]): void {
    const stays = new Set(wanted.map(nodeKey));
    const kept = new Map<string, ChildNode>();
    for (const child of [...parent.childNodes]) {
        const key = nodeKey(child);
        if (key === undefined) continue;
        if (stays.has(key)) kept.set(key, child);
        else child.remove(); // removed first, because moving the elements that stay would take the focus from them
    }
    let at = parent.firstChild;
    for (const node of wanted) {
        const key = nodeKey(node);
        const old = key === undefined ? at && nodeKey(at) === undefined ? at : undefined : kept.get(key);
        if (key !== undefined) kept.delete(key);
        if (!old || old.nodeName !== node.nodeName) {
            parent.insertBefore(node, at);
            continue;
        }
        if (old === at) at = at.nextSibling;
        else parent.insertBefore(old, at);
        updateContent(old, node);
    }
    while (at) {
        const next: ChildNode | null = at.nextSibling;
        at.remove();
        at = next;
    }
}

function updateContent(old: Node, wanted: Node): void {
    if (!(old instanceof Element && wanted instanceof Element)) {
        if (old.nodeValue !== wanted.nodeValue) old.nodeValue = wanted.nodeValue;
        return;
    }
    for (const name of old.getAttributeNames()) if (!wanted.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of wanted.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    updateChildren(old, [...wanted.childNodes]);
}
