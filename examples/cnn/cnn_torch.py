# The twin of main.cpp in PyTorch.
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 8, 3, padding=1)
        self.c2 = nn.Conv2d(8, 16, 3, padding=1)
        self.out = nn.Linear(256, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(F.relu(self.c2(x)), 2)
        return self.out(x.flatten(1))


def draw(generator, n):
    y = torch.randint(0, 4, (n,), generator=generator)
    r, c = torch.arange(16)[:, None], torch.arange(16)[None, :]
    shapes = torch.stack([
        (r == 8) | (c == 8),
        ((r - 8).abs() < 4) & ((c - 8).abs() < 4),
        (r % 4 == 0).expand(16, 16),
        (c % 4 == 0).expand(16, 16),
    ])
    clean = shapes.float()[y]
    return (clean + 0.7 * torch.randn(n, 16, 16, generator=generator))[:, None], y


def accuracy(net, x, y):
    with torch.no_grad():
        return (net(x).argmax(-1) == y).float().mean().item()


generator = torch.Generator().manual_seed(7)
test = draw(torch.Generator().manual_seed(99), 256)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(1, 61):
    x, y = draw(generator, 32)
    loss = F.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 20 == 0:
        print(i, " loss", loss.item(), " test", accuracy(net, *test))
torch.save(net.state_dict(), "cnn.pt")
again = Net()
again.load_state_dict(torch.load("cnn.pt"))
print("loaded:", accuracy(again, *test))
assert accuracy(again, *test) > 0.9
