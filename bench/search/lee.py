"""Makes a judged collection out of the Lee, Pincombe and Welsh (2005) news texts that the PyPI
package gensim ships with its tests: 50 texts whose likeness to each other people rated, and 300
further texts of the same source. The first sentence of each rated text is a query; the rated
likeness of the other 49, from 0 to 1, is the grade, or 0 when it is below 0.4 (unrelated texts were
rated about 0.25).

    pip download --no-deps gensim && python3 bench/search/lee.py gensim-*.whl FOLDER
"""

import pathlib
import re
import sys
import zipfile

wheel, folder = zipfile.ZipFile(sys.argv[1]), pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)


def lines(name):
    text = wheel.read(f"gensim/test/test_data/{name}").decode("utf-8", "replace")
    return [line for line in text.splitlines() if line.strip()]


rated, others = lines("lee.cor"), lines("lee_background.cor")
likeness = [[float(cell) for cell in line.split()] for line in lines("similarities0-1.txt")]
assert len(rated) == len(likeness) == 50


def first_sentence(text):
    return re.split(r"(?<=[a-z0-9]{2}[.!?]) +", text, maxsplit=1)[0].strip()


with open(folder / "documents.tsv", "w") as documents, open(folder / "queries.tsv", "w") as queries, open(folder / "qrels.tsv", "w") as qrels:
    for name, texts in (("rated", rated), ("other", others)):
        for number, text in enumerate(texts):
            documents.write(f"{name}{number}\t\t{' '.join(text.split())}\n")
    for number, text in enumerate(rated):
        queries.write(f"rated{number}\t{first_sentence(text)}\n")
        for other in range(50):
            if other != number:
                grade = max(likeness[number][other], likeness[other][number])
                qrels.write(f"rated{number}\trated{other}\t{grade if grade >= 0.4 else 0:.3f}\n")
