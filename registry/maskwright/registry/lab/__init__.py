"""The lab: one page that shows a constraint at work, step by step.

    server           start and stop; the compiling child
    api              the calls, JSON in and out                guard    who may make them
    site             the page's files and their headers        http     a small HTTP/1.1 server
    workbench        compiling, and the artifacts kept         tasks    judging a text, in the child
    views, runs      what the page shows, what it draws        orders   what it may ask for
    following, sampling, distributions, model, tokenizers, examples
    static/          the page: HTML, CSS, JavaScript modules, and Ajv (static/vendor/README.md)

The server keeps no state of a page: a view is a function of artifact, tokens and settings, which a link holds.
"""
