builtin.module {
  func.func @main(%A: tensor<4xi8> {penstock.name = "A", penstock.kind = "input"}) -> tensor<4xi32> {
    %0 = tasks.program "twice" of "pc.py" {} reads ["from penstock.tasks import Stream, int8, int32, program, task", "", "N = 4", "", "", "@program", "def twice(A: int8[N], B: int32[N]):", "    z = Stream[int8][2]", "", "    @task", "    def load():", "        for i in range(N // 2):", "            for j in range(2):", "                if j == 0:", "                    z[0].put(A[i * 2])", "                else:", "                    z[1].put(A[i * 2 + 1])", "", "    @task", "    def store():", "        for i in range(N // 2):", "            for j in range(2):", "                B[i * 2 + j] = z[j].get() * 2"](%A) : tensor<4xi8> -> tensor<4xi32>
    func.return %0 : tensor<4xi32>
  }
}
