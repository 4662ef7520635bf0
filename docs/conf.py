"""How Sphinx builds the site of these pages: `make docs` does, into docs/_build.

The pages are the Markdown files beside this one. Those of reference/ show docstrings. Those of
statistics/ are made from docstrings already, so a link to one of
those functions leads to its heading there.
"""

from __future__ import annotations

import inspect
import re
import shutil
from importlib.metadata import version as installed
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from toolkit import statistics

project = "Machine Rail Toolkit"
version = release = installed("machine-rail-toolkit")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3

default_role = "py:obj"  # docstrings name things in single backticks
add_module_names = False
toc_object_entries_show_parents = "hide"
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"Machine Rail Toolkit {version}"
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_theme_options = {  # the colours of the dashboard
    "light_css_variables": {"color-brand-primary": "#22627a", "color-brand-content": "#22627a"},
    "dark_css_variables": {"color-brand-primary": "#59caf0", "color-brand-content": "#59caf0"},
    "top_of_page_buttons": [],
}


def note_statistics(app: Sphinx, doctree: nodes.document) -> None:
    """Let each function of the statistics be found at its heading."""
    if not app.env.current_document.docname.startswith("statistics/"):
        return
    headings = {each[0].astext(): each["ids"][0] for each in doctree.findall(nodes.section)}
    at = {}
    python = app.env.domains.python_domain
    for part in filter(
        inspect.ismodule, (getattr(statistics, each) for each in statistics.__all__)
    ):
        for name in part.__all__:
            heading = headings.get(f"{part.__name__.rpartition('.')[2]}.{name}")
            anchor = at.setdefault(id(getattr(part, name)), heading)
            if anchor is not None:
                python.note_object(f"{part.__name__}.{name}", "function", anchor)


def resolve_by_class(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.Element
) -> nodes.Element | None:
    """Lead `Store.events` and `toolkit.store.Store.events` to `toolkit.Store.events`."""
    short = re.sub(r"^toolkit\.(?:[a-z_]+\.)*(?=[A-Z])", "", node["reftarget"])
    return env.domains.python_domain.resolve_xref(
        env, node["refdoc"], app.builder, "obj", f"toolkit.{short}", node, content
    )


def copy_pictures(app: Sphinx, exception: Exception | None) -> None:
    """Put the pictures where the pages' own HTML looks for them."""
    if exception is None:
        shutil.copytree(
            Path(app.srcdir, "pictures"), Path(app.outdir, "pictures"), dirs_exist_ok=True
        )


def setup(app: Sphinx) -> None:
    """Take part in the build."""
    app.connect("doctree-read", note_statistics)
    app.connect("missing-reference", resolve_by_class)
    app.connect("build-finished", copy_pictures)
