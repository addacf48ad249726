// Updates elements in place, so that they keep a press, the focus or selected text while their content changes.

const nodeKey = (node: Node): string | undefined => (node instanceof HTMLElement ? node.dataset['key'] : undefined);

/** Gives an element a key that identifies it among its siblings. An element with listeners needs a key, or an ancestor with
 *  one. */
export function keyed<T extends HTMLElement>(key: string | number, element: T): T {
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
        copyContent(old, node);
    }
    while (at) {
        const next: ChildNode | null = at.nextSibling;
        at.remove();
        at = next;
    }
}

function copyContent(old: Node, wanted: Node): void {
    if (!(old instanceof Element && wanted instanceof Element)) {
        if (old.nodeValue !== wanted.nodeValue) old.nodeValue = wanted.nodeValue;
        return;
    }
    for (const name of old.getAttributeNames()) if (!wanted.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of wanted.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    updateChildren(old, [...wanted.childNodes]);
}
