"""How long a prediction of one graph takes from Python: `python latency.py FOLDER COUNT` answers with a line of JSON."""

import json
import sys
import time

import lpgnn


def main():
    folder, count = sys.argv[1], int(sys.argv[2])
    data = lpgnn.read(folder)
    model = lpgnn.train(data, epochs=1, progress=False)
    graphs = [data[graph] for graph in range(100)]
    for graph in graphs:
        model.predict(graph)
    times = []
    for i in range(count):
        begin = time.perf_counter()
        model.predict(graphs[i % len(graphs)])
        times.append(1e3 * (time.perf_counter() - begin))
    times.sort()
    print(json.dumps({"p50": times[count // 2], "p99": times[count * 99 // 100]}))


if __name__ == "__main__":
    main()
